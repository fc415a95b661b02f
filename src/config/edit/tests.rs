use super::*;
use insta::assert_snapshot;

struct Place {
    _base: tempfile::TempDir,
    paths: Paths,
}

fn place(text: Option<&str>) -> Place {
    let base = tempfile::tempdir().unwrap();
    let paths = Paths::under(&base.path().join("data"), PathBuf::from("/home/ana"));
    paths.create().unwrap();
    if let Some(text) = text {
        std::fs::write(paths.config_file(), text).unwrap();
    }
    Place { _base: base, paths }
}

fn edited(text: &str, changes: &[Change]) -> String {
    let place = place(Some(text));
    edit(&place.paths, changes).unwrap();
    std::fs::read_to_string(place.paths.config_file()).unwrap()
}

#[test]
fn a_new_file_explains_itself() {
    let place = place(None);
    let done = edit(
        &place.paths,
        &[
            Change::AddRoot(PathBuf::from("/home/ana/projects")),
            Change::MaxMode(Mode::Edit),
        ],
    )
    .unwrap();
    assert!(done.changed);
    assert_eq!(done.config.remote.max_mode, Mode::Edit);
    let file = place.paths.config_file();
    assert_snapshot!(std::fs::read_to_string(&file).unwrap(), @r#"
    # What this computer allows. Only this file, on this computer, can widen it.
    # Changes count at once. lembas help config explains each line.

    [remote]
    roots = ["~/projects"]
    max_mode = "edit"
    "#);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[test]
fn comments_order_and_spacing_stay() {
    let text = "# mine\nname = \"zephyr\"   # the old laptop\n\n[remote]   # limits\n\
                max_mode  =  \"manual\"  # until I trust it\nscheduled = true # nights\n\n[link]\n# none\n";
    let new = edited(
        text,
        &[Change::MaxMode(Mode::Auto), Change::Scheduled(false)],
    );
    assert_eq!(
        new,
        text.replace("\"manual\"", "\"auto\"")
            .replace("true", "false")
    );
}

#[test]
fn entries_keep_their_own_comments() {
    let text = "[remote]\nroots = [\n  \"~/a\", # first\n  \"~/b\", # second\n]\n";
    let added = edited(text, &[Change::AddRoot(PathBuf::from("/srv/c"))]);
    assert_eq!(
        added,
        "[remote]\nroots = [\n  \"~/a\", # first\n  \"~/b\", # second\n  \"/srv/c\",\n]\n"
    );
    let removed = edited(text, &[Change::RemoveRoot(PathBuf::from("/home/ana/b"))]);
    assert!(removed.contains("\"~/a\", # first\n"), "{removed}");
    assert!(!removed.contains("~/b"), "{removed}");
}

#[test]
fn a_root_is_there_once_and_can_be_removed_in_any_spelling() {
    let text = "[remote]\nroots = [\"~/a\", \"/home/ana/b/../a/\", \"~/c\"]\n";
    let same = edited(text, &[Change::AddRoot(PathBuf::from("/home/ana/a"))]);
    assert_eq!(same, text);
    let removed = edited(text, &[Change::RemoveRoot(PathBuf::from("/home/ana/a"))]);
    assert_eq!(removed.split_whitespace().last(), Some("\"~/c\"]"));
}

#[test]
fn what_is_so_already_is_not_written() {
    let place = place(Some("[remote]\npaused = true\n"));
    let before = std::fs::metadata(place.paths.config_file()).unwrap();
    let done = edit(&place.paths, &[Change::Paused(true)]).unwrap();
    assert!(!done.changed);
    let after = std::fs::metadata(place.paths.config_file()).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

#[test]
fn a_wrong_file_is_not_touched() {
    let text = "[remote]\nmax_mod = \"edit\"\n";
    let place = place(Some(text));
    let error = edit(&place.paths, &[Change::Paused(true)]).unwrap_err();
    assert!(matches!(
        error,
        EditError::Config(ConfigError::Wrong { .. })
    ));
    assert_eq!(
        std::fs::read_to_string(place.paths.config_file()).unwrap(),
        text
    );
}

#[test]
fn two_commands_at_once_lose_nothing() {
    let place = place(None);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let paths = &place.paths;
            scope.spawn(move || {
                edit(
                    paths,
                    &[Change::AddRoot(PathBuf::from(format!("/srv/{n}")))],
                )
                .unwrap();
            });
        }
    });
    let config = load(&place.paths.config_file(), &place.paths.home).unwrap();
    assert_eq!(config.remote.roots.len(), 8);
}
