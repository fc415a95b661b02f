//! Where the models of this computer's chats are: the instance's `/v1`, with the device's token.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;

use crate::agent::About;
use crate::link::http::Http;
use crate::link::instance::InstanceFile;
use crate::model::{Bearer, Endpoint};
use crate::permission::Origin;
use crate::{acp, agent, clock};

/// How long the list of models may take.
const LIST: Duration = Duration::from_secs(10);
/// How long a chat waits for what the list says of its model.
const ABOUT: Duration = Duration::from_secs(3);
/// How long somebody who named a model waits for it; after that the name stands as it is.
const NAMED: Duration = Duration::from_secs(5);
/// Of the list so much is read; a longer one is no list of models.
const LIST_BYTES: usize = 1024 * 1024;
/// A list this young answers for a name that is in it.
const FRESH: Duration = Duration::from_secs(60);

/// The models of the linked instance.
#[derive(Clone, Debug)]
pub(super) struct InstanceModels {
    file: InstanceFile,
    http: Http,
    known: Arc<Mutex<Known>>,
}

/// The list as it was last read, and when it was last asked for, also in vain.
#[derive(Debug, Default)]
struct Known {
    asked: Option<clock::Instant>,
    last: Option<Kept>,
}

#[derive(Clone, Debug)]
struct Kept {
    /// Where it was read.
    base: String,
    at: clock::Instant,
    list: Arc<Value>,
}

impl InstanceModels {
    pub(super) fn new(file: InstanceFile, http: Http) -> Self {
        Self {
            file,
            http,
            known: Arc::default(),
        }
    }

    fn reach(&self, origin: &Origin) -> Result<Reach, String> {
        let held = self.file.held().ok_or(
            "this computer is not linked, so there is no model: lembas link, or lembas up",
        )?;
        if let Origin::Remote { instance, .. } = origin
            && *instance != held.instance
        {
            return Err("this chat belongs to an instance that is not linked any more".to_owned());
        }
        let base = held
            .models
            .clone()
            .ok_or_else(|| format!("{} offers no models to computers", held.url))?;
        let client = self.http.client().map_err(|error| error.to_string())?;
        Ok(Reach {
            client,
            base,
            file: self.file.clone(),
        })
    }

    /// The list, read now. None: it could not be had.
    async fn list(&self, reach: &Reach) -> Option<Arc<Value>> {
        let url = format!("{}/models", reach.base.trim_end_matches('/'));
        let mut request = reach.client.get(url).timeout(LIST);
        if let Some(Bearer(token)) = reach.bearer() {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.ok()?.error_for_status().ok()?;
        let body = read(answer).await?;
        let list: Value = serde_json::from_slice(&body).ok()?;
        list.get("data")?.as_array()?;
        let list = Arc::new(list);
        self.known.lock().last = Some(Kept {
            base: reach.base.clone(),
            at: clock::instant(),
            list: Arc::clone(&list),
        });
        Some(list)
    }

    /// The list that was read last at the same place.
    fn kept(&self, reach: &Reach) -> Option<Kept> {
        let kept = self.known.lock().last.clone();
        kept.filter(|kept| kept.base == reach.base)
    }

    /// Looks a name up: in a young list, else in a new one.
    async fn look(&self, origin: &Origin, model: &str) -> acp::Named {
        let Ok(reach) = self.reach(origin) else {
            return acp::Named::Unknown;
        };
        if let Some(kept) = self.kept(&reach).filter(|k| k.at.elapsed() < FRESH)
            && let Some(levels) = levels(&kept.list, model)
        {
            return acp::Named::Served { levels };
        }
        match clock::timeout(NAMED, self.list(&reach)).await {
            Ok(Some(list)) => match levels(&list, model) {
                Some(levels) => acp::Named::Served { levels },
                None => acp::Named::NotServed,
            },
            _ => acp::Named::Unknown,
        }
    }
}

/// The body of an answer, no longer than a list may be.
async fn read(mut answer: reqwest::Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.ok()? {
        if body.len() + chunk.len() > LIST_BYTES {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(body)
}

/// A model of the list.
fn listed<'a>(list: &'a Value, id: &str) -> Option<&'a Value> {
    let mut models = list.get("data")?.as_array()?.iter();
    models.find(|model| model.get("id").and_then(Value::as_str) == Some(id))
}

/// What the list says of a model (models/schema.json); nothing of one that is not in it.
fn about(list: &Value, id: &str) -> About {
    let ours = listed(list, id).map(|model| model.get("lembas").unwrap_or(model));
    About {
        context: ours
            .and_then(|m| m.get("context"))
            .and_then(Value::as_u64)
            .filter(|n| *n > 0),
        images: ours.and_then(|m| m.get("vision")).and_then(Value::as_bool),
    }
}

/// The model marked as the default, or the first (V1).
fn first(list: &Value) -> Option<String> {
    let models = list.get("data")?.as_array()?;
    let is_default =
        |model: &&Value| model.pointer("/lembas/default").and_then(Value::as_bool) == Some(true);
    let model = models.iter().find(is_default).or_else(|| models.first())?;
    model.get("id")?.as_str().map(str::to_owned)
}

/// The levels of a model besides `default` (models/schema.json); none: it is not in the list.
fn levels(list: &Value, id: &str) -> Option<Vec<String>> {
    let model = listed(list, id)?;
    let switch = model.pointer("/lembas/thinking_switch");
    let off = switch.and_then(Value::as_bool) == Some(true);
    let efforts = model.pointer("/lembas/efforts").and_then(Value::as_array);
    let efforts = efforts.into_iter().flatten().filter_map(Value::as_str);
    let off = off.then_some("off");
    Some(off.into_iter().chain(efforts).map(str::to_owned).collect())
}

struct Reach {
    client: reqwest::Client,
    base: String,
    file: InstanceFile,
}

impl Endpoint for Reach {
    fn client(&self) -> reqwest::Client {
        self.client.clone()
    }

    fn base(&self) -> String {
        self.base.clone()
    }

    fn bearer(&self) -> Option<Bearer> {
        // Asked anew: tokens are replaced while we run.
        let token = self.file.token()?;
        Some(Bearer(token.reveal().to_owned()))
    }
}

impl agent::Models for InstanceModels {
    fn endpoint(&self, origin: &Origin, _model: &str) -> Result<Arc<dyn Endpoint>, String> {
        Ok(Arc::new(self.reach(origin)?))
    }

    fn about(&self, origin: &Origin, model: &str) -> BoxFuture<'static, About> {
        let (models, origin, model) = (self.clone(), origin.clone(), model.to_owned());
        async move {
            let Ok(reach) = models.reach(&origin) else {
                return About::default();
            };
            let fresh = {
                let mut known = models.known.lock();
                let fresh = known.asked.is_some_and(|at| at.elapsed() < FRESH);
                if !fresh {
                    known.asked = Some(clock::instant());
                }
                fresh
            };
            if !fresh {
                // What was known stands in while the instance is away.
                let _late = clock::timeout(ABOUT, models.list(&reach)).await;
            }
            models
                .kept(&reach)
                .map_or_else(About::default, |kept| about(&kept.list, &model))
        }
        .boxed()
    }
}

impl acp::Models for InstanceModels {
    fn default(&self, origin: &Origin) -> BoxFuture<'static, Option<String>> {
        let (models, origin) = (self.clone(), origin.clone());
        async move {
            let reach = models.reach(&origin).ok()?;
            // The list is asked for each time, so that a new default counts; what was known
            // stands in while the instance is away.
            let listed = clock::timeout(LIST, models.list(&reach)).await;
            let listed = listed.ok().flatten();
            let list = listed.or_else(|| models.kept(&reach).map(|kept| kept.list))?;
            first(&list)
        }
        .boxed()
    }

    fn named(&self, origin: &Origin, model: &str) -> BoxFuture<'static, acp::Named> {
        let (models, origin, model) = (self.clone(), origin.clone(), model.to_owned());
        async move { models.look(&origin, &model).await }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_list_says_of_a_model_is_known() {
        let list = json!({ "data": [
            { "id": "a", "lembas": { "context": 8192, "vision": false } },
            { "id": "b", "lembas": { "context": 0, "vision": "yes" } },
            { "id": "c" },
            { "lembas": { "context": 1 } },
        ] });
        let of = |context, images| About { context, images };
        assert_eq!(about(&list, "a"), of(Some(8192), Some(false)));
        for nothing in ["b", "c", "d"] {
            assert_eq!(about(&list, nothing), of(None, None));
        }
    }

    #[test]
    fn the_default_comes_before_the_first() {
        let list = json!({ "data": [{ "id": "a" }, { "id": "b", "lembas": { "default": true } }] });
        assert_eq!(first(&list).as_deref(), Some("b"));
        let list = json!({ "data": [{ "id": "a" }, { "id": "b" }] });
        assert_eq!(first(&list).as_deref(), Some("a"));
        assert_eq!(first(&json!({ "data": [] })), None);
        assert_eq!(first(&json!([])), None);
    }

    #[test]
    fn levels_are_the_switch_and_the_efforts() {
        let list = json!({ "data": [
            { "id": "plain" },
            { "id": "both", "lembas": { "thinking_switch": true, "efforts": ["low", "high"] } },
        ] });
        assert_eq!(levels(&list, "plain"), Some(vec![]));
        let both: Vec<String> = ["off", "low", "high"].map(str::to_owned).to_vec();
        assert_eq!(levels(&list, "both"), Some(both));
        assert_eq!(levels(&list, "else"), None);
    }
}
