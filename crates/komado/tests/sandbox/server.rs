//! MCP servers: confined like commands, and never a program of the repository.

use super::{ALL, On, launcher};
use komado_agent::mcp::{McpServer, McpServers, McpTransport};
use komado_agent::sandbox::{Confinement, Network, Sandbox};
use komado_agent::tools::ToolProvider;
use komado_provider::Cancel;
use serde_json::Value;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A server that tells what it sees and reaches.
const SERVER: &str = r#"
import json, os, socket, subprocess, sys
def reached(act):
    try:
        act()
        return True
    except OSError:
        return False
def look(outside, work, port):
    return {
        "env": sorted(os.environ), "cwd": os.getcwd(), "files": sorted(os.listdir(".")),
        "outside": reached(lambda: open(outside).read()),
        "work": reached(lambda: open(work + "/made", "w").close()),
        "network": reached(lambda: socket.create_connection(("127.0.0.1", port), 10)),
        "given": os.environ.get("GIVEN"), "args": sys.argv[1:], "home": os.environ["HOME"],
        "child": subprocess.Popen(["setsid", "sleep", "3333"]).pid,
    }
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(look(**params["arguments"]))}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

struct Place {
    dir: TempDir,
    listener: TcpListener,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["task", "work", "outside", "servers"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("outside/secret"), "SECRET").unwrap();
        std::fs::write(dir.path().join("servers/look.py"), SERVER).unwrap();
        Self { dir, listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn server(&self, args: &[&str], confinement: Confinement) -> McpServer {
        let long = Duration::from_secs(60);
        let how = McpTransport::Command {
            program: "python3".to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: vec![("GIVEN".to_owned(), "in {folder}".to_owned())],
            folder: None,
            work: Some(self.at("work")),
            confinement,
        };
        McpServer { name: "s".to_owned(), how, start: long, call: long, only: Vec::new() }
    }

    fn looked(&self, servers: &mut McpServers) -> Value {
        let arguments = serde_json::json!({
            "outside": self.at("outside/secret"), "work": self.at("work"), "port": self.listener.local_addr().unwrap().port(),
        });
        let name = servers.definitions()[0].name.clone();
        let answer = servers.call(&name, &arguments.to_string(), &Cancel::default());
        let mut text = String::new();
        answer.body.reader().read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }
}

fn confined(on: On) -> Confinement {
    Confinement { launcher: launcher(on), ..Confinement::default() }
}

fn opened(server: McpServer) -> McpServers {
    McpServers::open(&[server], &Cancel::default()).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn a_module_of_the_repository_is_not_taken_for_the_server() {
    let place = Place::new();
    let planted = "open('planted', 'w').close()\n";
    std::fs::write(place.at("work/mcp_server_time.py"), planted).unwrap();
    let server = place.server(&["-m", "mcp_server_time"], confined(On::This));
    let why = McpServers::open(&[server], &Cancel::default()).err().unwrap().to_string();
    assert!(why.contains("No module named mcp_server_time"), "{why}");
    assert!(!place.at("work/planted").exists());
}

#[test]
fn a_package_of_the_repository_is_not_taken_for_the_server() {
    let place = Place::new();
    let bin = place.at("work/node_modules/.bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("mcp-server-time"), "#!/bin/sh\ntouch planted\n").unwrap();
    std::os::unix::fs::symlink("node_modules", place.at("node_modules")).unwrap();
    let mut permissions = std::fs::metadata(bin.join("mcp-server-time")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(bin.join("mcp-server-time"), permissions).unwrap();
    let mut server = place.server(&["--offline", "--yes", "mcp-server-time"], confined(On::This));
    if let McpTransport::Command { program, .. } = &mut server.how {
        "npx".clone_into(program);
    }
    assert!(McpServers::open(&[server], &Cancel::default()).is_err());
    assert!(!place.at("work/planted").exists());
}

#[test]
fn a_server_reaches_what_a_command_reaches_and_knows_only_what_was_configured() {
    for on in ALL {
        let place = Place::new();
        let script = place.at("servers/look.py");
        let server = place.server(&[script.to_str().unwrap(), "{folder}"], confined(on));
        let mut servers = opened(server);
        let seen = place.looked(&mut servers);
        assert_eq!(
            (&seen["outside"], &seen["network"], &seen["work"]),
            (&false.into(), &false.into(), &true.into()),
            "{seen}"
        );
        let work = place.at("work").display().to_string();
        assert_eq!((&seen["given"], &seen["args"][0]), (&format!("in {work}").into(), &work.clone().into()));
        assert!(!seen["cwd"].as_str().unwrap().starts_with(&work), "{seen}");
        assert_eq!(seen["files"], serde_json::json!(["node_modules"]));
        let known = [
            "GIVEN",
            "PATH",
            "HOME",
            "TMPDIR",
            "LANG",
            "LC_ALL",
            "LC_CTYPE",
            "TZ",
            "TERM",
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
            "JAVA_HOME",
            "GOROOT",
            "PWD",
            "OLDPWD",
            "SHLVL",
            "_",
        ];
        for name in seen["env"].as_array().unwrap().iter().filter_map(Value::as_str) {
            // Its launcher may have set variables of its own; none of ours came along.
            let is_ours = std::env::var_os(name).is_some() && !name.starts_with("PYENV_");
            assert!(!is_ours || known.contains(&name) || name.starts_with("GIT_CONFIG_"), "{name}");
        }
        let (home, child) = (seen["home"].as_str().unwrap().to_owned(), seen["child"].to_string());
        assert!(Path::new("/proc").join(&child).exists());
        drop(servers);
        assert!(!Path::new(&home).exists(), "its private home is gone with it");
        assert!(!Path::new("/proc").join(&child).exists(), "what it started is gone with it");
    }
}

#[test]
fn a_server_that_the_settings_do_not_confine_is_not() {
    let place = Place::new();
    let script = place.at("servers/look.py");
    let open = Confinement { sandbox: Sandbox::Off, network: Network::Open, ..confined(On::This) };
    let seen = place.looked(&mut opened(place.server(&[script.to_str().unwrap()], open)));
    assert_eq!((&seen["outside"], &seen["network"]), (&true.into(), &true.into()), "{seen}");
    let listed = Network::parse(&[place.listener.local_addr().unwrap().to_string()]).unwrap();
    let listed = Confinement { network: listed, ..confined(On::This) };
    let seen = place.looked(&mut opened(place.server(&[script.to_str().unwrap()], listed)));
    // Only through the proxy, which this server does not ask.
    assert_eq!((&seen["outside"], &seen["network"]), (&false.into(), &false.into()), "{seen}");
    assert!(seen["env"].as_array().unwrap().contains(&"https_proxy".into()), "{seen}");
}

#[test]
fn a_server_of_a_killed_task_ends_with_all_it_started() {
    // The keeper's input is all that ties a server to its task; it closes when the task's process dies.
    let place = Place::new();
    let words = launcher(On::This);
    let mut keeper = std::process::Command::new(&words[0]);
    keeper.args(&words[1..]).args(["--folder", place.at("work").to_str().unwrap(), "--relay-input", "--"]);
    keeper.args([
        "sh",
        "-c",
        "echo $$ > pid; trap '' HUP TERM; setsid sleep 3333 & echo $! > child; echo up; sleep 3333",
    ]);
    let mut keeper = keeper
        .current_dir(place.at("work"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    keeper.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    drop(keeper.stdin.take());
    keeper.wait().unwrap();
    for name in ["pid", "child"] {
        let pid = std::fs::read_to_string(place.at("work").join(name)).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{name} {pid} still runs");
    }
}
