//! What the command line of the hub's own computer asks of it: models and accounts.
//!
//! Whoever may talk to this process owns the hub's files anyway; nothing here is reached by HTTP.

use serde_json::Value;

use super::models::{AddError, NewModel, Tested};
use super::{Hub, auth, models};
use crate::store::db::StoreError;
use crate::store::hub::accounts::Account;
use crate::store::hub::models::Model;

/// Why an account was not added.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("there is an account called {0} already")]
    Taken(String),
    #[error("{0}")]
    Bad(String),
    #[error("cannot save")]
    Store(#[from] StoreError),
}

impl Hub {
    /// Forgets a model, by its id or its name. False when there is none.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn remove_model(&self, name: &str) -> Result<bool, StoreError> {
        let Some(model) = self.model(name).await? else {
            return Ok(false);
        };
        let owner = &self.shared.facts.owner;
        let removed = self
            .shared
            .store
            .delete_model(owner.clone(), model.id)
            .await?;
        models::tell(&self.shared, owner).await;
        Ok(removed)
    }

    /// Tries a model that is there, by its id or its name; none when there is none.
    ///
    /// # Errors
    /// The ways in which a test can fail.
    pub async fn test_model(&self, name: &str) -> Result<Option<Tested>, AddError> {
        let Some(model) = self.model(name).await? else {
            return Ok(None);
        };
        let new = NewModel {
            name: Some(model.name),
            url: model.url,
            key: model.key,
            model: model.model,
            context: model.context,
            efforts: model.efforts,
        };
        Ok(Some(models::test(&self.shared.http, &new).await?))
    }

    async fn model(&self, name: &str) -> Result<Option<Model>, StoreError> {
        let all = self
            .shared
            .store
            .models(self.shared.facts.owner.clone())
            .await?;
        Ok(all
            .into_iter()
            .find(|model| model.id == name || model.name == name))
    }

    /// The accounts, the first one first: name, and whether a password is set.
    ///
    /// # Errors
    /// When the store cannot read.
    pub async fn accounts(&self) -> Result<Vec<Value>, StoreError> {
        let all = self.shared.store.accounts().await?;
        let shown = |account: Account| serde_json::json!({ "name": account.name, "password": account.password.is_some() });
        Ok(all.into_iter().map(shown).collect())
    }

    /// Adds an account.
    ///
    /// # Errors
    /// When the name is taken, or the name or the password cannot be used.
    pub async fn add_account(&self, name: &str, password: String) -> Result<(), AccountError> {
        let bad = |error: super::error::ApiError| AccountError::Bad(error.text().to_owned());
        let name = auth::good_name(name).map_err(bad)?;
        auth::good_password(&password).map_err(bad)?;
        let hash = auth::hash(password).await.map_err(bad)?;
        if self.shared.store.add_account(name.clone(), hash).await? {
            Ok(())
        } else {
            Err(AccountError::Taken(name))
        }
    }
}
