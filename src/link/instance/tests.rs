use super::*;

pub(crate) fn instance(token: &str) -> Instance {
    Instance {
        url: "https://a.example".into(),
        instance: "i-1".into(),
        name: "home".into(),
        link: "wss://a.example/link".into(),
        models: None,
        account: Account {
            id: AccountId::new("a-1"),
            name: "ana".into(),
        },
        device: DeviceId::new("d"),
        paired_at: 1,
        token: Secret::new(token),
        successor: None,
    }
}

const OLD: &str = "old-token-0123456789";
const NEW: &str = "new-token-0123456789";
const NEWER: &str = "newer-token-0123456789";

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

async fn linked() -> (tempfile::TempDir, InstanceFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = InstanceFile::in_folder(&folder.path().join("c"));
    assert_eq!(file.load().await.unwrap(), None);
    file.save(instance(OLD)).await.unwrap();
    (folder, file)
}

/// What another process reads.
async fn on_disk(file: &InstanceFile) -> Instance {
    let other = InstanceFile::in_folder(file.path().parent().unwrap());
    (*other.load().await.unwrap().unwrap()).clone()
}

#[tokio::test]
async fn a_pairing_comes_back_and_can_be_forgotten() {
    let (_folder, file) = linked().await;
    assert_eq!(on_disk(&file).await, instance(OLD));
    assert_eq!(file.token(), Some(secret(OLD)));
    file.forget().await.unwrap();
    assert_eq!(file.load().await.unwrap(), None);
    assert_eq!(file.token(), None);
    let late = file.succeed(secret(NEW)).await;
    assert!(matches!(late, Err(InstanceError::NotLinked)));
}

#[tokio::test]
async fn a_successor_is_on_disk_before_it_is_acknowledged_and_used_at_once() {
    let (_folder, file) = linked().await;
    file.succeed(secret(NEW)).await.unwrap();
    let there = on_disk(&file).await;
    assert_eq!((there.token.reveal(), there.current().reveal()), (OLD, NEW));
    assert_eq!(file.token(), Some(secret(NEW)));
    // A second one before the first was used takes its place.
    file.succeed(secret(NEWER)).await.unwrap();
    assert_eq!(on_disk(&file).await.successor, Some(secret(NEWER)));
    assert_eq!(on_disk(&file).await.token, secret(OLD));
}

#[tokio::test]
async fn a_used_successor_is_the_token() {
    let (_folder, file) = linked().await;
    file.succeed(secret(NEW)).await.unwrap();
    file.confirm(secret(OLD)).await.unwrap();
    assert_eq!(on_disk(&file).await.successor, Some(secret(NEW)));
    file.confirm(secret(NEW)).await.unwrap();
    assert_eq!(on_disk(&file).await, instance(NEW));
    // From now on a refusal of it is final.
    assert!(!file.refuse(secret(NEW)).await.unwrap());
    assert_eq!(file.token(), Some(secret(NEW)));
}

#[tokio::test]
async fn a_successor_refused_before_its_first_use_gives_way_to_the_token() {
    let (_folder, file) = linked().await;
    file.succeed(secret(NEW)).await.unwrap();
    assert!(file.refuse(secret(NEW)).await.unwrap());
    assert_eq!(on_disk(&file).await, instance(OLD));
    assert!(!file.refuse(secret(OLD)).await.unwrap());
}

#[tokio::test]
async fn what_is_no_token_is_not_written() {
    let (_folder, file) = linked().await;
    let long = "a".repeat(513);
    for bad in [
        "",
        "short",
        "with space 0123456789",
        "line\n012345678901234567",
        &long,
    ] {
        let refused = file.succeed(secret(bad)).await;
        assert!(matches!(refused, Err(InstanceError::BadToken)), "{bad:?}");
    }
    assert_eq!(on_disk(&file).await, instance(OLD));
}

#[tokio::test]
async fn a_broken_file_says_what_to_do() {
    let (_folder, file) = linked().await;
    std::fs::write(file.path(), "{").unwrap();
    let error = file.load().await.unwrap_err().to_string();
    assert!(
        error.contains("instance.json") && error.contains("lembas link"),
        "{error}"
    );
}

#[tokio::test]
async fn the_devices_id_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("c");
    let id = device_id(&folder).await.unwrap();
    assert_eq!(id.as_str().len(), 32);
    assert_eq!(device_id(&folder).await.unwrap(), id);
    std::fs::write(folder.join("device"), "../../x").unwrap();
    assert_ne!(device_id(&folder).await.unwrap().as_str(), "../../x");
}
