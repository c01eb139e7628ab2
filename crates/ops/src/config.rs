//! Each setting, its value, and where that came from.

use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel};
use komado_config::origin::SettingRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show each setting and where it came from.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ShowConfig {
    /// Only settings whose name begins with this
    pub prefix: Option<String>,
    /// Print all settings and their variables as a Markdown table
    #[arg(long)]
    #[serde(default)]
    pub reference: bool,
}

/// The settings in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct ShownSettings {
    /// The file that was read.
    pub file: Option<String>,
    /// Why a file of the working folder was not.
    pub left_out: Option<String>,
    /// Each setting.
    pub items: Vec<SettingRow>,
    /// Every setting there is, where that was asked for: a Markdown table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl Operation for ShowConfig {
    const ABOUT: OperationLabel = OperationLabel::read("config", "Show each setting and where it came from");
    const INTERFACES: Interfaces =
        Interfaces::only_cli("admin config", "settings name keys, addresses and folders of the machine");
    type Output = ShownSettings;

    fn run(self, context: &OperationContext) -> OpResult<ShownSettings> {
        if self.reference {
            return Ok(ShownSettings {
                reference: Some(komado_config::reference()),
                ..ShownSettings::default()
            });
        }
        let config = &context.config;
        let prefix = self.prefix.unwrap_or_default();
        let items: Vec<_> = config.rows().into_iter().filter(|row| row.key.starts_with(&prefix)).collect();
        if items.is_empty() {
            return Err(OpFault::not_found(format!(
                "no setting begins with {prefix:?}; `komado admin config` lists those in force, and with --reference all there are"
            )));
        }
        Ok(ShownSettings {
            file: config.file.as_ref().map(|path| path.display().to_string()),
            left_out: config.unconsented.as_ref().map(ToString::to_string),
            items,
            reference: None,
        })
    }
}
