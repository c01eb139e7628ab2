//! The files in `deploy/` say what the binary understands.
use crate::run;

use run::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;

fn file(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)).unwrap()
}

/// A command line is understood when the binary has a help page for it.
fn is_understood(words: &[&str]) {
    let place = Place::new();
    let words: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
    let said = place.run(&words);
    assert_eq!(said.code, 0, "{words:?}: {}", said.err);
    for option in words.iter().filter(|word| word.starts_with("--")) {
        assert!(said.out.contains(option), "{words:?}: {option} is not known");
    }
}

#[test]
fn the_compose_file_is_yaml_and_listens_to_this_machine_alone() {
    let compose: Value = serde_saphyr::from_str(&file("docker-compose.yaml")).unwrap();
    let komado = &compose["services"]["komado"];
    assert_eq!(komado["build"]["dockerfile"], "deploy/Dockerfile");
    assert!(
        komado["ports"]
            .as_array()
            .unwrap()
            .iter()
            .all(|port| port.as_str().unwrap().starts_with("127.0.0.1:"))
    );
    let volume = komado["volumes"][0].as_str().unwrap().split(':').next().unwrap();
    assert!(compose["volumes"].get(volume).is_some(), "{volume} is a volume of the file");
    let check = komado["healthcheck"]["test"].as_array().unwrap();
    assert!(check.last().unwrap().as_str().unwrap().contains("GET /healthz"));
}

#[test]
fn the_health_check_of_the_compose_file_finds_a_server_with_keys_healthy() {
    let compose: Value = serde_saphyr::from_str(&file("docker-compose.yaml")).unwrap();
    let check: Vec<String> =
        serde_json::from_value(compose["services"]["komado"]["healthcheck"]["test"].clone()).unwrap();
    assert_eq!(check[0], "CMD");
    let place = Place::new();
    place.ok(&["admin", "key", "add", "laptop"]);
    // As the container listens: at every address, which takes keys. Only the port is another, since 4141 may be taken.
    let mut serve = place.command(&["serve", "--listen", "0.0.0.0:0", "--upstream", "scripted", "--json"]);
    let mut serve =
        serve.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let port = ready["url"].as_str().unwrap().rsplit(':').next().unwrap();
    let run = |port: &str| {
        let words = check[1..].iter().map(|word| word.replace("/4141 ", &format!("/{port} ")));
        let words: Vec<String> = words.collect();
        let mut command = std::process::Command::new(&words[0]);
        command.args(&words[1..]).output().unwrap()
    };
    let healthy = run(port);
    serve.kill().unwrap();
    serve.wait().unwrap();
    assert!(healthy.status.success(), "{}", String::from_utf8_lossy(&healthy.stderr));
    assert!(!run(port).status.success(), "a server that is gone is not healthy");
}

#[test]
fn the_container_starts_a_command_that_there_is() {
    let text = file("Dockerfile");
    let list = |word: &str| -> Vec<String> {
        let line = text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
        serde_json::from_str(line.trim()).unwrap()
    };
    let words: Vec<String> = list("ENTRYPOINT").into_iter().chain(list("CMD")).collect();
    assert_eq!(words[0], "komado");
    is_understood(&words.iter().skip(1).map(String::as_str).collect::<Vec<_>>());
    let known =
        ["FROM", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD", "#", "&&", ""];
    for line in text.lines() {
        assert!(known.contains(&line.split_whitespace().next().unwrap_or_default()), "{line}");
    }
}

#[test]
fn the_unit_is_whole_and_starts_a_command_that_there_is() {
    let text = file("komado.service");
    let (mut sections, mut start) = (Vec::new(), None);
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(section) => sections.push(section),
            None => {
                let (key, value) = line.split_once('=').expect("a key and its value");
                assert!(!sections.is_empty() && !key.trim().is_empty() && !value.is_empty(), "{line}");
                if key == "ExecStart" {
                    start = Some(value);
                }
            }
        }
    }
    assert_eq!(sections, ["Unit", "Service", "Install"]);
    let words: Vec<&str> = start.unwrap().split(' ').skip(1).collect();
    is_understood(&words);
}

#[test]
fn every_variable_of_the_example_sets_something() {
    let place = Place::new();
    let mut command = place.command(&["admin", "config"]);
    let mut set = 0;
    for line in file("env.example").lines() {
        let Some((name, value)) = line.trim_start_matches('#').split_once('=') else { continue };
        assert!(!name.contains(' '), "{line}");
        command.env(name, if value.is_empty() { "x" } else { value });
        set += 1;
    }
    let out = command.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(set > 3 && out.status.success() && !err.contains("sets nothing"), "{err}");
}
