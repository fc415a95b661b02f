use std::sync::Arc;

use super::*;
use crate::config::{Config, Live};

struct Place {
    _folder: tempfile::TempDir,
    base: PathBuf,
    live: Live,
    limits: Limits,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    for made in [
        "a/src/.git",
        "a/Beta",
        "a/alpha",
        "a/.hidden",
        "b",
        "secret/deep",
    ] {
        std::fs::create_dir_all(base.join(made)).unwrap();
    }
    std::fs::write(base.join("a/file"), "").unwrap();
    let link =
        |to: &str, at: &str| std::os::unix::fs::symlink(base.join(to), base.join(at)).unwrap();
    link("secret", "a/escape");
    link("b", "a/to_b");
    link("nowhere", "a/broken");
    let live = Live::new(Config::default());
    let limits = Limits::new(live.clone(), Arc::new(|| "zephyr".to_owned()), "full");
    let place = Place {
        _folder: folder,
        base,
        live,
        limits,
    };
    place.roots(&["a", "b"]);
    place
}

impl Place {
    fn roots(&self, roots: &[&str]) {
        let mut config = Config::default();
        config.remote.roots = roots.iter().map(|root| self.base.join(root)).collect();
        self.live.set(config);
    }

    fn list(&self, path: Option<&str>) -> Result<String, &'static str> {
        let path = path.map(|path| self.base.join(path));
        let list = list(&self.limits, path.as_deref()).map_err(|no| no.reason)?;
        Ok(list
            .to_string()
            .replace(&self.base.display().to_string(), "…"))
    }
}

#[test]
fn folders_under_the_roots_and_links_that_stay_inside() {
    let place = place();
    insta::assert_snapshot!(place.list(None).unwrap(), @r#"{"path":"","roots":["…/a","…/b"],"folders":[{"name":"a","path":"…/a","git":false},{"name":"b","path":"…/b","git":false}],"truncated":false}"#);
    insta::assert_snapshot!(place.list(Some("a")).unwrap(), @r#"{"path":"…/a","roots":["…/a","…/b"],"folders":[{"name":"alpha","path":"…/a/alpha","git":false},{"name":"Beta","path":"…/a/Beta","git":false},{"name":"src","path":"…/a/src","git":true},{"name":"to_b","path":"…/b","git":false},{"name":".hidden","path":"…/a/.hidden","git":false}],"truncated":false}"#);
    insta::assert_snapshot!(place.list(Some("a/src")).unwrap(), @r#"{"path":"…/a/src","roots":["…/a","…/b"],"folders":[{"name":".git","path":"…/a/src/.git","git":false}],"truncated":false,"parent":"…/a"}"#);
}

#[test]
fn nothing_outside_is_listed() {
    let place = place();
    for path in [
        "",
        "secret",
        "a/escape",
        "a/../secret",
        "a/escape/deep",
        "nowhere",
    ] {
        assert_eq!(place.list(Some(path)), Err("outside"), "{path:?}");
    }
    assert_eq!(place.list(Some("a/nowhere")), Err("missing"));
    assert_eq!(place.list(Some("a/file")), Err("missing"));
    place.roots(&[]);
    assert_eq!(place.list(None), Err("roots"));
    assert_eq!(place.list(Some("a")), Err("roots"));
    place.roots(&["a"]);
    assert!(
        !place.list(Some("a")).unwrap().contains("to_b"),
        "it leads out now"
    );
    place.live.hold(true);
    assert_eq!(place.list(None), Err("paused"));
}

#[test]
fn a_folder_that_became_a_link_is_not_read() {
    let place = place();
    let judged = place.base.join("a/alpha");
    std::fs::remove_dir(&judged).unwrap();
    std::os::unix::fs::symlink(place.base.join("secret"), &judged).unwrap();
    assert!(
        read(&judged, &place.limits.roots()).is_err(),
        "the last part"
    );
    assert!(
        read(&judged.join("deep"), &place.limits.roots()).is_err(),
        "a part before it"
    );
}

#[test]
fn a_large_folder_is_cut_and_says_so() {
    let place = place();
    let many = place.base.join("b");
    for n in 0..=MOST {
        std::fs::create_dir(many.join(format!("f{n}"))).unwrap();
    }
    let list = list(&place.limits, Some(&many)).unwrap();
    assert_eq!(list["folders"].as_array().unwrap().len(), MOST);
    assert_eq!(list["truncated"], true);
    let long = place.base.join("a/deep".to_owned() + &"p".repeat(200));
    for n in 0..400 {
        let name = format!("{n}{}", "x".repeat(230));
        std::fs::create_dir_all(long.join(name)).unwrap();
    }
    let list = super::list(&place.limits, Some(&long)).unwrap();
    assert_eq!(list["truncated"], true);
    assert!(list.to_string().len() < 128 * 1024, "it fits into a frame");
}
