//! What a command cannot do, however it is written. Everything is allowed here: the wall must hold without manners.

use super::Bench;

fn bench() -> Bench {
    Bench::with(|workshop| workshop.allow = vec!["*".into()])
}

/// Runs a line that must not succeed, nor say what must stay outside.
fn fails(bench: &mut Bench, line: &str) {
    let heard = bench.shell(line);
    assert!(heard.is_error, "{line}: {}", heard.text);
    assert!(!heard.text.contains("SECRET"), "{line}: {}", heard.text);
    assert!(!heard.text.contains("[exit code 125]"), "there is no sandbox: {}", heard.text);
}

#[test]
fn a_command_reads_nothing_outside() {
    let mut bench = bench();
    let secret = bench.outside().join("secret.txt");
    let secret = secret.display();
    for line in [
        format!("cat {secret}"),
        "cat ../outside/secret.txt".to_owned(),
        format!("ln -s {secret} link && cat link"),
        format!("ln {secret} hard && cat hard"),
        format!("cp {secret} copy"),
        format!("mv {secret} moved"),
        format!("cat /proc/self/root{secret}"),
        format!("eval 'cat {secret}'"),
        format!("bash -c 'exec 3< {secret}'"),
        format!("python3 -c 'print(open(\"{secret}\").read())'"),
        "ls ../outside".to_owned(),
        "ls \"$(dirname \"$PWD\")\"".to_owned(),
        "cat /etc/shadow".to_owned(),
        "ls /root /home /var/log".to_owned(),
    ] {
        fails(&mut bench, &line);
    }
}

#[test]
fn a_command_writes_nothing_outside() {
    let mut bench = bench();
    let outside = bench.outside();
    for line in [
        format!("echo x > {}/new", outside.display()),
        format!("echo x >> {}/secret.txt", outside.display()),
        format!("truncate -s 0 {}/secret.txt", outside.display()),
        format!("python3 -c 'import os; os.truncate(\"{}/secret.txt\", 0)'", outside.display()),
        format!("rm {}/secret.txt", outside.display()),
        format!("mkdir {}/dir", outside.display()),
        format!("ln -s {} out && echo x > out/new", outside.display()),
        format!("mv . {}/work", outside.display()),
        "echo x > /tmp/../etc/komado-test".to_owned(),
        "echo x > /usr/komado-test".to_owned(),
        "echo 0 > /proc/sys/kernel/panic".to_owned(),
        "mount -t tmpfs none .".to_owned(),
    ] {
        fails(&mut bench, &line);
    }
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), "SECRET\n");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_command_neither_signals_nor_inspects_the_process_that_started_it() {
    let mut bench = bench();
    let us = std::process::id();
    fails(&mut bench, &format!("kill -KILL {us}"));
    fails(&mut bench, &format!("kill -0 {us}"));
    fails(&mut bench, &format!("cat /proc/{us}/environ"));
    fails(&mut bench, &format!("readlink /proc/{us}/fd/0"));
    fails(&mut bench, &format!("head -c 1 /proc/{us}/mem"));
    fails(&mut bench, "head -c 1 /proc/kcore");
}

#[test]
fn the_environment_holds_nothing_but_what_is_meant_for_commands() {
    let mut bench = bench();
    // Cargo gives a test program variables of its own; none of them may be seen either.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let heard = bench.shell("env; cat /proc/$$/environ | tr '\\0' '\\n'");
    assert!(!heard.is_error, "{}", heard.text);
    let known = [
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "TZ",
        "TERM",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "JAVA_HOME",
        "GOROOT",
    ];
    for line in heard.text.lines().filter(|line| !line.starts_with('[')) {
        let name = line.split('=').next().unwrap_or_default();
        assert!(known.contains(&name) || name.starts_with("GIT_CONFIG_"), "{line}");
    }
}

#[test]
fn the_usual_tools_work_inside() {
    let mut bench = bench();
    let heard = bench.shell(
        "git init -q . && git add -A && git commit -q --allow-empty -m 窓 \
         && git log --format=%s && python3 -c 'import ssl, json; print(1)' && echo x > /dev/null && head -c 4 /dev/urandom | wc -c",
    );
    assert_eq!((heard.text.as_str(), heard.is_error), ("窓\n1\n4\n[exit code 0]\n", false));
}

#[test]
fn what_is_hidden_stays_so_for_a_folder_in_the_midst_of_it() {
    let mut bench = Bench::with(|workshop| {
        workshop.allow = vec!["*".into()];
        let base = workshop.folder.join("contexts");
        std::fs::create_dir_all(base.join("running/s1")).unwrap();
        std::fs::write(base.join("running/s1/messages.jsonl"), "SECRET").unwrap();
        workshop.folder = base.join("work/s2");
        std::fs::create_dir_all(&workshop.folder).unwrap();
        std::fs::create_dir(base.join("work/s3")).unwrap();
        workshop.confinement.hide.push(base);
    });
    assert_eq!(bench.shell("echo x > a && mkdir b && mv a b && cat b/a").text, "x\n[exit code 0]\n");
    for line in [
        "cat ../../running/s1/messages.jsonl",
        "ls ../..",
        "ls ../../running",
        "ls ../s3",
        "echo x > ../s3/new",
        "rm -r ../../running",
        "mkdir ../s4",
    ] {
        fails(&mut bench, line);
    }
}

#[test]
fn a_folder_that_would_show_what_is_to_be_hidden_is_refused() {
    let mut bench = Bench::with(|workshop| {
        workshop.confinement.hide.push(workshop.folder.join("sessions"));
    });
    std::fs::create_dir(bench.work().join("sessions")).unwrap();
    let heard = bench.shell("ls");
    assert!(heard.is_error && heard.text.contains("must not be reached by commands"), "{}", heard.text);
}

#[test]
fn a_file_without_end_ends_at_its_bound() {
    let mut bench = bench();
    let heard = bench.shell("ulimit -c; ulimit -f; truncate -s 5G big");
    let lines: Vec<&str> = heard.text.lines().collect();
    assert_eq!(lines[0], "0");
    assert!(lines[1].parse::<u64>().unwrap() <= 4 << 20, "{}", lines[1]);
    assert!(heard.is_error);
}
