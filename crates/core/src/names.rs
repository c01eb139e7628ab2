//! Enums whose variants have names: written once, read in both directions.

/// Gives an enum `ALL`, `name` and `named`. The documentation is that of `name`.
#[macro_export]
macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($variant:ident = $name:expr),+ $(,)? }) => {
        impl $type {
            /// Every one.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            $(#[$doc])*
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The one called `name`.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}
