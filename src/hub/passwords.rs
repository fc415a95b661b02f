//! Passwords: argon2 strings made and checked, in memory that goes back to the system. Not here: who
//! may try, and how often (auth.rs, gate.rs).

use argon2::password_hash::{
    self, Decimal, Ident, Output, ParamsString, PasswordHash, PasswordHasher,
    PasswordVerifier as _, Salt, SaltString,
};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use tokio::sync::Semaphore;

use super::error::{ApiError, ApiResult};
use crate::ids::random_bytes;

/// Characters of a password at least.
const LEAST: usize = 8;
/// Bytes of a password at most: a longer one is not even hashed.
const MOST: usize = 1024;

/// Hashing takes 19 MiB and a core each time. Who comes when these are taken waits.
static HASHERS: Semaphore = Semaphore::const_new(2);

/// Whether a password may be chosen.
pub(super) fn good(password: &str) -> ApiResult<()> {
    if password.chars().count() < LEAST {
        return Err(ApiError::bad(format!(
            "A password has at least {LEAST} characters."
        )));
    }
    if password.len() > MOST {
        return Err(ApiError::bad(format!(
            "A password has at most {MOST} bytes."
        )));
    }
    Ok(())
}

/// The argon2 string of a password.
pub(super) async fn hash(password: String) -> ApiResult<String> {
    let _one = HASHERS.acquire().await;
    crate::rt::blocking(move || {
        let salt = SaltString::encode_b64(&random_bytes(16)).ok()?;
        Hasher
            .hash_password(password.as_bytes(), &salt)
            .map(|h| h.to_string())
            .ok()
    })
    .await
    .flatten()
    .ok_or_else(|| ApiError::bad("This password cannot be used."))
}

/// Whether a password is the stored one. Where there is none stored, the time is spent anyway.
pub(super) async fn verify(password: String, stored: Option<String>) -> bool {
    if password.len() > MOST {
        return false;
    }
    let _one = HASHERS.acquire().await;
    crate::rt::blocking(move || match stored {
        Some(stored) => PasswordHash::new(&stored)
            .is_ok_and(|h| Hasher.verify_password(password.as_bytes(), &h).is_ok()),
        None => {
            if let Ok(salt) = SaltString::encode_b64(&random_bytes(16)) {
                let _same_time = Hasher.hash_password(password.as_bytes(), &salt);
            }
            false
        }
    })
    .await
    .unwrap_or(false)
}

/// Argon2 with its usual parameters, in memory of its own kind: the C library gives a piece of more
/// than 32 MiB back as soon as it is free, and keeps a smaller one for good, one for each thread
/// that ever hashed. What is asked for and not used is never touched, and costs nothing.
struct Hasher;

const PIECE: usize = 33 * 1024 * 1024 / Block::SIZE;

impl PasswordHasher for Hasher {
    type Params = Params;

    fn hash_password<'a>(
        &self,
        password: &[u8],
        salt: impl Into<Salt<'a>>,
    ) -> password_hash::Result<PasswordHash<'a>> {
        self.hash_password_customized(password, None, None, Params::default(), salt)
    }

    fn hash_password_customized<'a>(
        &self,
        password: &[u8],
        algorithm: Option<Ident<'a>>,
        version: Option<Decimal>,
        params: Params,
        salt: impl Into<Salt<'a>>,
    ) -> password_hash::Result<PasswordHash<'a>> {
        let algorithm = algorithm.map_or_else(|| Ok(Algorithm::default()), Algorithm::try_from)?;
        let version = version.map_or_else(|| Ok(Version::default()), Version::try_from)?;
        let salt = salt.into();
        let mut bytes = [0; Salt::MAX_LENGTH];
        let bytes = salt.decode_b64(&mut bytes)?;
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let written = ParamsString::try_from(&params)?;
        let blocks = params.block_count();
        let mut memory = Vec::with_capacity(blocks.max(PIECE));
        memory.resize(blocks, Block::new());
        let argon = Argon2::new(algorithm, version, params);
        let output = Output::init_with(length, |out| {
            Ok(argon.hash_password_into_with_memory(password, bytes, out, &mut memory)?)
        })?;
        Ok(PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: written,
            salt: Some(salt),
            hash: Some(output),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_argon2_as_everybody_writes_it() {
        let salt = SaltString::encode_b64(b"sixteen bytes ..").unwrap();
        let plain = Argon2::default()
            .hash_password(b"open sesame", &salt)
            .unwrap();
        let ours = Hasher.hash_password(b"open sesame", &salt).unwrap();
        assert_eq!(ours.to_string(), plain.to_string());
        // Strings that were kept before, and with other parameters, are checked as what they are.
        let small = Argon2::new(
            Algorithm::Argon2id,
            Version::V0x13,
            Params::new(64, 3, 1, None).unwrap(),
        );
        let small = small.hash_password(b"open sesame", &salt).unwrap();
        for kept in [plain, small] {
            assert!(Hasher.verify_password(b"open sesame", &kept).is_ok());
            assert!(Hasher.verify_password(b"open sesam", &kept).is_err());
        }
    }
}
