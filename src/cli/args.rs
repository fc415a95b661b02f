//! What can be typed: commands, arguments, their help.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};

use super::completions;

/// Drive a coding agent on your own computers from a web page, a phone or an editor.
#[derive(Debug, Parser)]
#[command(
    name = "lembas",
    version,
    disable_help_subcommand = true,
    after_help = "Begin with:  lembas up                       everything on this computer, try it at once\n\
                  \x20            lembas link https://your.address            link this computer to an instance\n\
                  More:        lembas help phone | remote | config | environment"
)]
pub(super) struct Args {
    /// Only JSON on stdout, one object a line
    #[arg(long, global = true)]
    pub(super) json: bool,

    /// A folder that holds everything: settings, stores, sockets
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) data: Option<PathBuf>,

    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start an instance and this computer's daemon together
    #[command(
        after_help = "Examples:\n  lembas up\n  lembas up --listen 127.0.0.1:0      any free port"
    )]
    Up(Up),
    /// Link this computer to an instance
    #[command(
        after_help = "Examples:\n  lembas link https://box.example\n  lembas link retry        dial now\n  lembas link take         take the link over from another process"
    )]
    Link(Link),
    /// End the link and forget its token
    #[command(
        after_help = "Example:\n  lembas unlink        what the instance was allowed here ends with it"
    )]
    Unlink,
    /// Run the daemon in the foreground (a service runs this)
    #[command(after_help = "Example:\n  lembas daemon        Ctrl-C stops it")]
    Daemon,
    /// Run an instance of your own, and care for it
    #[command(
        after_help = "Examples:\n  lembas hub --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --url https://box.example:8443\n  lembas hub user add ana\n  lembas hub model add qwen --url http://127.0.0.1:11434/v1 --model qwen3:32b"
    )]
    Hub(Hub),
    /// Whether this computer is linked, and what runs
    #[command(
        after_help = "Ends with 0 when linked or on the way, 1 when not as it should be, 69 when no daemon runs.\n\nExamples:\n  lembas status\n  lembas status --json"
    )]
    Status,
    /// The folders in which an instance may work
    #[command(after_help = "Examples:\n  lembas roots add ~/projects\n  lembas roots list")]
    Roots {
        #[command(subcommand)]
        action: Option<Roots>,
    },
    /// The most that a linked instance may do: manual, edit or auto
    #[command(after_help = "Examples:\n  lembas mode\n  lembas mode edit")]
    Mode {
        /// manual: asks before every change. edit: changes files and runs boxed commands.
        /// auto: asks almost nothing; type the word in full.
        #[arg(add = completions::words(&["manual", "edit"]))]
        mode: Option<String>,
    },
    /// Whose answers count: once, full or local
    #[command(
        after_help = "Example:\n  lembas approvals local\n\n  once   from the instance, once or for the session\n  full   from the instance, rules that are kept too\n  local  only answers given on this computer"
    )]
    Approvals {
        #[arg(value_enum)]
        whose: Option<Whose>,
    },
    /// Edit the settings of this computer, and check them
    #[command(
        after_help = "Examples:\n  lembas config edit\n  lembas config check\n\nlembas help config explains each setting."
    )]
    Config {
        #[command(subcommand)]
        action: Settings,
    },
    /// Whether a linked instance may work here at all: on or off
    #[command(
        after_help = "Examples:\n  lembas remote off\n  lembas remote on\n\nlembas pause stops it for a while; lembas unlink ends the link."
    )]
    Remote {
        #[arg(value_enum)]
        switch: Option<OnOff>,
    },
    /// Stop all remote work at once, and keep it stopped
    #[command(after_help = "Example:\n  lembas pause         until:  lembas resume-work")]
    Pause,
    /// Let remote work go on after pause
    #[command(after_help = "Example:\n  lembas resume-work")]
    ResumeWork,
    /// The questions that wait for an answer
    #[command(after_help = "Examples:\n  lembas asks\n  lembas asks --json")]
    Asks,
    /// Answer a question
    #[command(
        after_help = "Examples:\n  lembas answer 7f allow\n  lembas answer 7f refuse --note \"use the test database\"\n  lembas answer 7f allow --choose 2"
    )]
    Answer(Answer),
    /// Say yes to a watch command that was refused because it would have asked
    #[command(after_help = "Examples:\n  lembas rules pending\n  lembas allow --pending 3")]
    Allow {
        /// Its number in `lembas rules pending`
        #[arg(long, value_name = "N", value_parser = number, add = completions::pending())]
        pending: u64,
    },
    /// What is allowed always, and taking it back
    #[command(
        after_help = "Examples:\n  lembas rules\n  lembas rules remove 3f2a\n  lembas rules pending"
    )]
    Rules {
        #[command(subcommand)]
        action: Option<Rules>,
    },
    /// Who allowed what, when (no contents)
    #[command(after_help = "Examples:\n  lembas log\n  lembas log -n 200 --json")]
    Log {
        /// How many of the newest
        #[arg(short, long = "lines", value_name = "N", default_value = "50", value_parser = number)]
        n: u64,
    },
    /// Run a watch command as a schedule would, and print its hash
    #[command(
        after_help = "Example:\n  lembas monitor --cwd ~/projects/api -- git ls-remote origin main"
    )]
    Monitor(Monitor),
    /// The chats on this computer
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  lembas sessions\n  lembas sessions -n 100 --json\n  lembas sessions delete 3f9c"
    )]
    Sessions {
        #[command(subcommand)]
        action: Option<Chats>,
        /// How many of the newest
        #[arg(short, long = "lines", value_name = "N", default_value = "20", value_parser = number)]
        n: u64,
    },
    /// Speak ACP on stdin and stdout, for editors
    #[command(
        after_help = "Example, the settings of an editor:\n  command: lembas, arguments: acp"
    )]
    Acp,
    /// Settings of the service
    #[command(
        after_help = "Examples:\n  lembas service scheduled on\n  lembas service scheduled off"
    )]
    Service {
        #[command(subcommand)]
        action: Service,
    },
    /// The harness spec that this program carries, by version and hash
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  lembas spec\n  lembas spec check ~/llembas/spec"
    )]
    Spec {
        #[command(subcommand)]
        action: Option<SpecAction>,
    },
    /// Print completions for a shell
    #[command(
        after_help = "Install:\n  bash  echo 'source <(lembas completions bash)' >> ~/.bashrc\n  zsh   echo 'source <(lembas completions zsh)' >> ~/.zshrc      (after compinit)\n  fish  echo 'lembas completions fish | source' > ~/.config/fish/completions/lembas.fish"
    )]
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page
    #[command(after_help = "Example:\n  lembas man | man -l -")]
    Man,
    /// Explain a command or a topic
    Help {
        /// A command, or: phone, remote, config, environment
        #[arg(add = completions::topics())]
        topic: Vec<String>,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct Up {
    /// Where the page is served; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(super) listen: SocketAddr,
    /// Do not open a browser
    #[arg(long)]
    pub(super) no_open: bool,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Link {
    /// The address of the instance
    #[arg(required = true)]
    pub(super) url: Option<String>,
    #[command(subcommand)]
    pub(super) action: Option<LinkAction>,
}

#[derive(Debug, Subcommand)]
pub(super) enum LinkAction {
    /// Dial now instead of waiting for the next try
    Retry,
    /// Take the link over from another process with this computer's token
    Take,
}

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Hub {
    /// Where the page and the link are served
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(super) listen: SocketAddr,
    /// The address people and computers reach it under, where that is not the one listened on
    #[arg(long, value_name = "URL", value_parser = reached)]
    pub(super) url: Option<String>,
    /// A PEM file with the certificate chain
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// A PEM file with its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) action: Option<HubAction>,
}

#[derive(Debug, Subcommand)]
pub(super) enum SpecAction {
    /// Compare a folder with it, file by file
    Check {
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum HubAction {
    /// Print a fresh one-time link to the page
    #[command(after_help = "Examples:\n  lembas hub link\n  lembas hub link --user ana")]
    Link {
        /// Whose link; the first account's when not given
        #[arg(long, value_name = "NAME", add = completions::users())]
        user: Option<String>,
    },
    /// Models of the instance
    #[command(
        after_help = "Examples:\n  lembas hub model list\n  lembas hub model add qwen --url http://127.0.0.1:11434/v1 --model qwen3:32b\n  lembas hub model add big --url https://models.example/v1 --key-file key.txt"
    )]
    Model {
        #[command(subcommand)]
        action: HubModel,
    },
    /// Accounts of the instance
    #[command(after_help = "Examples:\n  lembas hub user list\n  lembas hub user add ana")]
    User {
        #[command(subcommand)]
        action: HubUser,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum HubModel {
    /// Add a model server; it is tried before it is saved
    Add {
        /// How the model is called on the page
        name: String,
        /// The server's OpenAI-compatible address, ending in /v1
        #[arg(long)]
        url: String,
        /// A file with the key; - reads it from stdin
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
        /// The server's own name for the model; NAME when it is the same
        #[arg(long, value_name = "ID")]
        model: Option<String>,
    },
    /// List the models
    List,
    /// Remove a model
    Remove {
        #[arg(add = completions::models())]
        name: String,
    },
    /// Try a model with one tiny request
    Test {
        #[arg(add = completions::models())]
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum HubUser {
    /// Add an account; prints the link with which its person signs in first
    Add { name: String },
    /// List the accounts
    List,
}

#[derive(Debug, Subcommand)]
pub(super) enum Roots {
    /// Allow work in a folder
    Add {
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Take a folder back; work in it ends at once
    Remove {
        #[arg(add = completions::roots())]
        folder: PathBuf,
    },
    /// List the folders
    List,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(super) enum Settings {
    /// Open the settings in your editor; they count once they are understood
    Edit,
    /// Say whether the settings are understood
    Check,
    /// Print where the settings are
    Path,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Whose {
    Once,
    Full,
    Local,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Answer {
    /// The beginning of the question's id, as in `lembas asks`
    #[arg(value_parser = beginning, add = completions::asks())]
    pub(super) ask: String,
    #[arg(value_enum)]
    pub(super) outcome: AllowOrRefuse,
    /// Allow it for the whole session
    #[arg(long, conflicts_with = "always")]
    pub(super) session: bool,
    /// Allow it always in this folder
    #[arg(long)]
    pub(super) always: bool,
    /// Of a question with choices: the number or the words of one; again for several
    #[arg(long, value_name = "CHOICE")]
    pub(super) choose: Vec<String>,
    /// Words for the agent
    #[arg(long, value_name = "WORDS")]
    pub(super) note: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AllowOrRefuse {
    Allow,
    Refuse,
}

#[derive(Debug, Subcommand)]
pub(super) enum Rules {
    /// What is allowed without asking
    List,
    /// Watch commands that were refused because they would have asked
    Pending,
    /// Take a rule back; it counts at once
    Remove {
        /// The beginning of the rule's id
        #[arg(value_parser = beginning, add = completions::rules())]
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Chats {
    /// Delete a chat with everything that was kept of it; what runs in it ends
    Delete {
        /// The beginning of its id, as in `lembas sessions`
        #[arg(add = completions::chats())]
        id: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct Monitor {
    /// The folder to run in; this one when not given
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) cwd: Option<PathBuf>,
    /// manual, edit or auto; edit when not given, as for a schedule
    #[arg(long, value_name = "MODE", add = completions::words(&["manual", "edit", "auto"]))]
    pub(super) mode: Option<String>,
    /// Seconds, at most 600
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(super) timeout: u64,
    /// The command, after --
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Service {
    /// Whether scheduled work is accepted
    Scheduled {
        #[arg(value_enum, value_name = "on|off")]
        switch: OnOff,
    },
}

/// The shells that completions are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnOff {
    On,
    Off,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.replace("localhost:", "127.0.0.1:")
        .parse()
        .map_err(|_| "it must be an address and a port, as 127.0.0.1:8787".to_owned())
}

/// The base of an instance: scheme and host, nothing behind.
fn reached(text: &str) -> Result<String, String> {
    let form = || "it must be like https://box.example or https://box.example:8443".to_owned();
    let url = reqwest::Url::parse(text.trim()).map_err(|_| form())?;
    let bare = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if !bare {
        return Err(form());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn beginning(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is the beginning of an id, as the list shows it".to_owned());
    }
    Ok(text.to_owned())
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("it must be a whole number from 1 on".to_owned()),
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds @ 1..=600) => Ok(seconds),
        _ => Err("it must be whole seconds from 1 to 600".to_owned()),
    }
}
