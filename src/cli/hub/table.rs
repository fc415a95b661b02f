//! What can be asked of a hub over the control socket of its process.

use std::sync::Arc;

use jsonrpsee_core::RegisterMethodError;
use jsonrpsee_types::{ErrorObjectOwned, Params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::daemon::control::{Detail, Methods, RpcModule, read, refusal};
use crate::hub::Hub;
use crate::hub::models::{AddError, NewModel};

pub(super) const LINK: &str = "hub_link";
pub(crate) const MODELS: &str = "hub_models";
pub(super) const ADD_MODEL: &str = "hub_model_add";
pub(super) const REMOVE_MODEL: &str = "hub_model_remove";
pub(super) const TEST_MODEL: &str = "hub_model_test";
pub(crate) const USERS: &str = "hub_users";
pub(super) const ADD_USER: &str = "hub_user_add";

/// The answer of [`LINK`] and [`ADD_USER`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) url: String,
    pub(crate) token: String,
    /// Milliseconds since the epoch.
    pub(crate) expires: i64,
}

impl From<crate::hub::OneTimeLink> for Link {
    fn from(link: crate::hub::OneTimeLink) -> Self {
        Self {
            url: link.url,
            token: link.token,
            expires: link.expires,
        }
    }
}

/// The answer of [`ADD_MODEL`] and [`TEST_MODEL`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tested {
    pub(super) id: String,
    pub(super) ms: u64,
    pub(super) text: String,
}

impl From<crate::hub::models::Tested> for Tested {
    fn from(tested: crate::hub::models::Tested) -> Self {
        Self {
            id: tested.id,
            ms: tested.ms,
            text: tested.text,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

/// Whose link is wished; the owner's where nobody is named.
#[derive(Debug, Deserialize)]
struct Whose {
    name: Option<String>,
}

type Said = Result<Value, ErrorObjectOwned>;

/// The table of a hub.
///
/// # Errors
/// When a name is given twice, which is a fault of ours.
pub(crate) fn methods(hub: Hub) -> anyhow::Result<Methods> {
    let mut table = RpcModule::new(hub);
    method(&mut table, LINK, |hub, whose: Whose| async move {
        let link = match &whose.name {
            None => Some(hub.one_time_link().await.map_err(|error| unsaved(&error))?),
            Some(name) => hub.link_of(name).await.map_err(|error| unsaved(&error))?,
        };
        match link {
            Some(link) => Ok(json!(Link::from(link))),
            None => Err(no_account(whose.name.as_deref().unwrap_or_default())),
        }
    })?;
    method(&mut table, MODELS, |hub, _: Value| async move {
        let models = hub.models().await.map_err(|error| unsaved(&error))?;
        Ok(json!({ "models": models }))
    })?;
    method(&mut table, ADD_MODEL, |hub, new: NewModel| async move {
        let tested = hub.add_model(new).await.map_err(|error| model(&error))?;
        Ok(json!(Tested::from(tested)))
    })?;
    method(&mut table, TEST_MODEL, |hub, Named { name }| async move {
        match hub.try_model(&name).await.map_err(|error| model(&error))? {
            Some(tested) => Ok(json!(Tested::from(tested))),
            None => Err(no_model(&name)),
        }
    })?;
    method(&mut table, REMOVE_MODEL, |hub, Named { name }| async move {
        match hub
            .remove_model(&name)
            .await
            .map_err(|error| unsaved(&error))?
        {
            true => Ok(json!({})),
            false => Err(no_model(&name)),
        }
    })?;
    method(&mut table, USERS, |hub, _: Value| async move {
        let users = hub.accounts().await.map_err(|error| unsaved(&error))?;
        let users: Vec<Value> = users
            .into_iter()
            .map(|user| json!({ "name": user.name, "password": user.password.is_some() }))
            .collect();
        Ok(json!({ "users": users }))
    })?;
    method(&mut table, ADD_USER, |hub, Named { name }| async move {
        let added = hub
            .add_account(&name)
            .await
            .map_err(|error| unsaved(&error))?;
        let link = added.ok_or_else(|| {
            refusal(
                format!("there is an account called {name} already"),
                Detail {
                    code: "taken".to_owned(),
                    why: None,
                    fixes: vec!["lembas hub user list".to_owned()],
                    number: None,
                },
            )
        })?;
        Ok(json!(Link::from(link)))
    })?;
    Ok(table.into())
}

fn method<P, F, W>(
    table: &mut RpcModule<Hub>,
    name: &'static str,
    answer: F,
) -> Result<(), RegisterMethodError>
where
    P: serde::de::DeserializeOwned + Send,
    F: Fn(Arc<Hub>, P) -> W + Clone + Send + Sync + 'static,
    W: Future<Output = Said> + Send + 'static,
{
    table.register_async_method(name, move |params: Params<'static>, hub, _| {
        let read = read(&params);
        let answer = answer.clone();
        async move { answer(hub, read?).await }
    })?;
    Ok(())
}

fn said(code: &str, error: &dyn std::error::Error, fix: &str) -> ErrorObjectOwned {
    refusal(
        error.to_string(),
        Detail {
            code: code.to_owned(),
            why: error.source().map(ToString::to_string),
            fixes: vec![fix.to_owned()],
            number: None,
        },
    )
}

fn unsaved(error: &crate::store::db::StoreError) -> ErrorObjectOwned {
    said("unavailable", error, "df -h ~")
}

fn no_account(name: &str) -> ErrorObjectOwned {
    refusal(
        format!("there is no account called {name}"),
        Detail {
            code: "no_account".to_owned(),
            why: None,
            fixes: vec!["lembas hub user list".to_owned()],
            number: None,
        },
    )
}

fn no_model(name: &str) -> ErrorObjectOwned {
    refusal(
        format!("there is no model called {name}"),
        Detail {
            code: "no_model".to_owned(),
            why: None,
            fixes: vec!["lembas hub model list".to_owned()],
            number: None,
        },
    )
}

fn model(error: &AddError) -> ErrorObjectOwned {
    match error {
        AddError::Store(error) => unsaved(error),
        AddError::Test(error) => said("model", error, &error.step()),
    }
}
