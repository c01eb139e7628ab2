//! `komado key`: the keys of those who may reach `komado serve`.

use komado_ops::key::{AddKey, ListKeys, RevokeKey};

subverbs! {
    operations {
        /// Make a key and show it, this once
        Add => AddKey,
        /// List the keys, without their secrets
        List => ListKeys,
        /// Take a key back: it opens nothing from the next request on
        Revoke => RevokeKey,
    }
}
