//! The processes that are measured, and those that answer them.

use crate::context::BenchEngine;
use crate::error::{Error, Result};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A process that listens somewhere; it ends with this value.
pub(super) struct GatewayServer {
    child: Child,
    /// Where it listens, without a path.
    pub(super) url: String,
}

impl Drop for GatewayServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl GatewayServer {
    /// The model: with a window, or without one and without reading what it is sent.
    pub(super) fn model(komado: &BenchEngine, window: Option<u32>) -> Result<Self> {
        let mut command = komado.command();
        command.args(["dev", "model-server", "--json"]);
        match window {
            Some(window) => command.args(["--window", &window.to_string()]),
            None => command.arg("--discard"),
        };
        Self::told(command)
    }

    /// The gateway in front of `upstream`, with its sessions in `base`.
    pub(super) fn gateway(komado: &BenchEngine, base: &Path, upstream: &str) -> Result<Self> {
        let mut command = komado.command();
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--base-dir"]).arg(base);
        let settings = [
            "server.upstream=bench".to_owned(),
            "llm.bench.dialect=openai".to_owned(),
            format!("llm.bench.base_url={upstream}/v1"),
            "server.rate=0".to_owned(),
        ];
        settings.iter().for_each(|setting| {
            command.args(["--set", setting]);
        });
        Self::told(command)
    }

    /// LiteLLM in front of `upstream`.
    pub(super) fn litellm(program: &Path, folder: &Path, upstream: &str) -> Result<Self> {
        let config = folder.join("litellm.yaml");
        let text = format!(
            "model_list:\n  - model_name: scripted\n    litellm_params:\n      model: openai/scripted\n      \
             api_base: {upstream}/v1\n      api_key: none\ngeneral_settings:\n  \
             disable_spend_logs: true\n  dangerously_permit_weak_or_unset_master_key: true\n"
        );
        std::fs::write(&config, text)?;
        // It prints no address, so one is chosen for it.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--config"]).arg(&config);
        command.env("NO_PROXY", "127.0.0.1").env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        let log = std::fs::File::create(folder.join("litellm.log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let url = format!("http://127.0.0.1:{port}");
        let mut server = Self { child: command.spawn().map_err(|e| failed(&command, e))?, url };
        server.wait(&folder.join("litellm.log"))?;
        Ok(server)
    }

    /// A komado, which says on its first line where it listens.
    fn told(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|e| failed(&command, e))?;
        let Some(out) = child.stdout.take() else {
            return Err(Error::failed("a measured process has no output"));
        };
        let mut lines = BufReader::new(out).lines();
        let line = lines.next().transpose()?.unwrap_or_default();
        let told: Value = serde_json::from_str(&line).unwrap_or_default();
        let Some(url) = told["url"].as_str().map(str::to_owned) else {
            let _ = child.kill();
            return Err(Error::failed(format!("a measured process did not start: {line}")));
        };
        // No reader goes on, and a full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, url })
    }

    /// Until it takes connections.
    fn wait(&mut self, log: &Path) -> Result {
        let address = self.url.trim_start_matches("http://").to_owned();
        for _ in 0..600 {
            if std::net::TcpStream::connect(&address).is_ok() {
                return Ok(());
            }
            if self.child.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let told = std::fs::read_to_string(log).unwrap_or_default();
        let last = told.trim().lines().last().unwrap_or("it did not say why").to_owned();
        Err(Error::failed(format!("the peer did not start: {last}")))
    }

    /// Most bytes of memory it ever had.
    pub(super) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }

    /// Processor time it has taken, in clock ticks of a hundredth of a second.
    pub(super) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The name in parentheses may hold spaces.
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let field =
            |n: usize| after.split_whitespace().nth(n).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
        field(11) + field(12)
    }
}

fn failed(command: &Command, error: std::io::Error) -> Error {
    Error::failed(format!("cannot start {}: {error}", command.get_program().display()))
}
