//! Help by topic, the manual page, completions.

use clap::CommandFactory as _;

use super::Ending;
use super::args::Args;
use super::failure::{Exit, Failure};
use super::out::Out;
use crate::config::env;
use crate::text::nearest::nearest;

/// What `lembas` alone says.
pub(super) fn overview(out: Out) -> Ending {
    out.line(Args::command().render_help().to_string().trim_end());
    Ok(Exit::Well)
}

/// `lembas help [COMMAND | TOPIC]`.
pub(super) fn topic(out: Out, words: &[String]) -> Ending {
    let Some(first) = words.first() else {
        return overview(out);
    };
    match first.as_str() {
        "phone" => out.line(PHONE.trim_end()),
        "remote" => out.line(REMOTE.trim_end()),
        "config" => out.line(CONFIG.trim_end()),
        "environment" => out.line(environment().trim_end()),
        _ => {
            let mut command = Args::command();
            command.build();
            let mut at = &mut command;
            for word in words {
                let known: Vec<String> = at
                    .get_subcommands()
                    .map(|c| c.get_name().to_owned())
                    .chain(TOPICS.map(str::to_owned))
                    .collect();
                let Some(next) = at.find_subcommand_mut(word) else {
                    let fix = nearest(word, known.iter().map(String::as_str));
                    return Err(Failure::new(
                        Exit::Usage,
                        "usage",
                        format!("there is no help about {word}"),
                        fix.map_or_else(
                            || "lembas help".to_owned(),
                            |f| format!("lembas help {f}"),
                        ),
                    ));
                };
                at = next;
            }
            out.line(at.render_long_help().to_string().trim_end());
        }
    }
    Ok(Exit::Well)
}

pub(super) const TOPICS: [&str; 4] = ["phone", "remote", "config", "environment"];

pub(super) fn man(out: Out) -> Ending {
    let mut page = Vec::new();
    clap_mangen::Man::new(Args::command())
        .render(&mut page)
        .map_err(anyhow::Error::from)?;
    out.bytes(&page);
    Ok(Exit::Well)
}

fn environment() -> String {
    let mut text = "These variables are read:\n\n".to_owned();
    for var in env::TABLE.iter().filter(|var| !var.about.is_empty()) {
        text.push_str(&format!("  {:<13} {}\n", var.name, var.about));
    }
    text.push_str("\nThe folders follow XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME and XDG_RUNTIME_DIR.\n\
The log of lembas up, daemon, hub and acp is in ~/.local/state/lembas/lembas.log, at most 4 MiB and the\n\
file before it.\n");
    text
}

const PHONE: &str = "\
The page works on a phone, but phones install pages, send notifications and open the camera over
HTTPS only, and 127.0.0.1 on a phone is the phone. Give the instance an address of its own:

  With a certificate you have:
    lembas hub --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --url https://your.name:8443

  Behind a reverse proxy that speaks HTTPS (it must pass on WebSockets and not buffer /events):
    lembas hub --listen 127.0.0.1:8787 --url https://your.name

  Inside a private network that brings certificates, forward its HTTPS to 127.0.0.1:8787.

Then sign in on the phone:   lembas hub link     prints a one-time address for it
and link this computer:      lembas link https://your.address
";

const REMOTE: &str = "\
What an instance can do with this computer

Whoever runs or breaks into the instance can
  read everything in the shared folders at any time;
  with max_mode = edit, change it, which means that code of theirs runs when you next build;
  answer this computer's questions, as far as approvals lets answers from there count.

What holds it are settings that only this computer can change:
  lembas roots add|remove FOLDER     in which folders it may work
  lembas mode manual|edit|auto       the most it may do
  lembas approvals once|full|local   whose answers count
  lembas service scheduled on|off    whether scheduled work is accepted (an honest server obeys)
  lembas pause                       stops all remote work at once, until lembas resume-work
  lembas unlink                      ends the link
  lembas log                         who allowed what, when
";

const CONFIG: &str = "\
~/.config/lembas/config.toml (or DIR/config/config.toml with --data DIR). A change counts at once;
a file with mistakes leaves the settings before it in force, and lembas status says so.

  name = \"zephyr\"            the name of this computer on the page

  [remote]
  enabled = true             false: nothing comes over the link
  paused = false             lembas pause
  roots = [\"~/projects\"]     folders in which an instance may work
  max_mode = \"manual\"        manual, edit or auto
  scheduled = false          whether scheduled work is accepted
  approvals = \"once\"         once, full or local: lembas help remote
  approval_timeout = 600     seconds a question waits; without it, as long as it takes
  approval_max = 86400       seconds to which a wait may be extended
  max_sessions = 8           chats an instance may have open at once
  sudo = \"refuse\"            ask: it may be asked about, each time

  [protected]
  release = []               single protected paths that local chats may write

  [link]                     a change has the link dialled anew
  ca_file = \"/path/ca.pem\"   further certificate authorities
  pin = \"sha256:…\"           the only certificate accepted
  proxy = \"http://host:port\" otherwise the usual variables
";
