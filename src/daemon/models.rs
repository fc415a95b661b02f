//! Where the models of this computer's chats are: the instance's `/v1`, with the device's token.

use std::collections::HashMap;
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
/// How long a chat waits for what the list says of its model, and for how long it is then known.
const ABOUT: Duration = Duration::from_secs(3);
const KNOWN: Duration = Duration::from_secs(60);
/// Models that something is known of; what a longer list says of the rest is not kept.
const MODELS: usize = 1_000;
/// Of the list so much is read; a longer one is no list of models.
const LIST_BYTES: usize = 1024 * 1024;

/// The models of the linked instance.
#[derive(Clone, Debug)]
pub(super) struct InstanceModels {
    file: InstanceFile,
    http: Http,
    known: Arc<Mutex<Known>>,
}

/// What the list said when it was last read.
#[derive(Debug, Default)]
struct Known {
    /// When it was last asked for, also in vain.
    asked: Option<clock::Instant>,
    /// The model that was the default, or the first.
    first: Option<String>,
    about: HashMap<String, About>,
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

    /// Reads the list and keeps what it says.
    async fn list(&self, origin: &Origin) -> Option<()> {
        let reach = self.reach(origin).ok()?;
        let url = format!("{}/models", reach.base.trim_end_matches('/'));
        let mut request = reach.client.get(url).timeout(LIST);
        if let Some(Bearer(token)) = reach.bearer() {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.ok()?.error_for_status().ok()?;
        if answer
            .content_length()
            .is_some_and(|n| n > LIST_BYTES as u64)
        {
            return None;
        }
        let body = answer
            .bytes()
            .await
            .ok()
            .filter(|body| body.len() <= LIST_BYTES)?;
        let list: Value = serde_json::from_slice(&body).ok()?;
        let (first, about) = (first(&list), about(&list));
        let mut known = self.known.lock();
        if first.is_some() {
            known.first = first;
        }
        known.about = about;
        Some(())
    }
}

/// What a list says of each of its models (models/schema.json).
fn about(list: &Value) -> HashMap<String, About> {
    let models = list.get("data").and_then(Value::as_array);
    let models = models.into_iter().flatten().take(MODELS);
    models
        .filter_map(|model| {
            let ours = model.get("lembas").unwrap_or(model);
            let about = About {
                context: ours
                    .get("context")
                    .and_then(Value::as_u64)
                    .filter(|n| *n > 0),
                images: ours.get("vision").and_then(Value::as_bool),
            };
            Some((model.get("id")?.as_str()?.to_owned(), about))
        })
        .collect()
}

/// The model marked as the default, or the first.
fn first(list: &Value) -> Option<String> {
    let models = list.get("data")?.as_array()?;
    let is_default = |model: &&Value| {
        ["default", "is_default"]
            .iter()
            .any(|key| model.get(*key).and_then(Value::as_bool) == Some(true))
    };
    let model = models.iter().find(is_default).or_else(|| models.first())?;
    model.get("id")?.as_str().map(str::to_owned)
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
            let fresh = {
                let mut known = models.known.lock();
                let fresh = known.asked.is_some_and(|at| at.elapsed() < KNOWN);
                if !fresh {
                    known.asked = Some(clock::instant());
                }
                fresh
            };
            if !fresh {
                // What was known stands in while the instance is away.
                let _late = clock::timeout(ABOUT, models.list(&origin)).await;
            }
            let known = models.known.lock();
            known.about.get(&model).copied().unwrap_or_default()
        }
        .boxed()
    }
}

impl acp::Models for InstanceModels {
    fn default(&self, origin: &Origin) -> BoxFuture<'static, Option<String>> {
        let (models, origin) = (self.clone(), origin.clone());
        async move {
            // The list is asked for each time, so that a new default counts; what was known
            // stands in while the instance is away.
            let _late = clock::timeout(LIST, models.list(&origin)).await;
            let known = models.known.lock();
            known.first.clone()
        }
        .boxed()
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
        let about = about(&list);
        let of = |context, images| About { context, images };
        assert_eq!(about["a"], of(Some(8192), Some(false)));
        assert_eq!((about["b"], about["c"]), (of(None, None), of(None, None)));
        assert_eq!(about.len(), 3);
    }

    #[test]
    fn the_default_comes_before_the_first() {
        let list = json!({ "data": [{ "id": "a" }, { "id": "b", "default": true }] });
        assert_eq!(first(&list).as_deref(), Some("b"));
        let list = json!({ "data": [{ "id": "a" }, { "id": "b" }] });
        assert_eq!(first(&list).as_deref(), Some("a"));
        assert_eq!(first(&json!({ "data": [] })), None);
        assert_eq!(first(&json!([])), None);
    }
}
