//! Policies with names: our own, and those that reproduce the numbers of the systems we grew out of.

use super::{Keep, Policy, RESERVE, Rungs, Thresholds, ToolBudget, Trigger, Truncate};
use serde::Deserialize;

/// A policy with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum Preset {
    /// Soft, low and hard marks over what is usable.
    #[default]
    Komado,
    /// Contexts in files: above 0.7 of the window, five messages kept, no fewer than ten summarised.
    Seed000,
    /// Output cache and compaction: from 0.8 of the limit on, one turn kept.
    Seed001,
    /// Condense, then truncate: from a percentage on, or above 0.9 of the window less the reserve; three messages kept.
    Seed002,
}

crate::names! {
    /// Its name in settings and on the command line.
    Preset { Komado = "komado", Seed000 = "seed000", Seed001 = "seed001", Seed002 = "seed002" }
}

impl Preset {
    /// Its policy.
    pub fn policy(self) -> Policy {
        let ours = Policy {
            preset: self,
            reserve: None,
            buffer: 0.1,
            trigger: Trigger::Usable(0.8),
            thresholds: Thresholds::default(),
            low: 0.5,
            min_gain: 0.25,
            keep: Keep::Share(0.25),
            tools: ToolBudget::FromWindow,
            rungs: Rungs { trim: true, condense: true, truncate: Truncate::ToLow },
            min_messages: 4,
            summary: 0.1,
        };
        let condense_only = Rungs { trim: false, ..ours.rungs };
        match self {
            Self::Komado => ours,
            Self::Seed000 => Policy {
                trigger: Trigger::AboveWindow(0.7),
                keep: Keep::Messages(5),
                min_messages: 10,
                tools: ToolBudget::Unbounded,
                rungs: condense_only,
                ..ours
            },
            Self::Seed001 => {
                Policy { trigger: Trigger::AtWindow(0.8), keep: Keep::Turns(1), min_messages: 1, ..ours }
            }
            Self::Seed002 => Policy {
                reserve: Some(RESERVE),
                thresholds: Thresholds { global: Some(100.0), ..Thresholds::default() },
                keep: Keep::Messages(3),
                min_messages: 2,
                tools: ToolBudget::Unbounded,
                rungs: Rungs { truncate: Truncate::Half, ..condense_only },
                ..ours
            },
        }
    }
}
