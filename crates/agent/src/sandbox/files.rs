//! Which files a confined process can open: Landlock.
//!
//! What may be read besides the folder is named here, place by place: programs and what they need, and of `/etc` only what
//! holds no secret. A home folder is never opened as a whole, and neither is a place that holds what is to be hidden.

use super::namespaces::{KeptPlaces, SHARED_MEMORY};
use super::{Error, FileAccess};
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What cannot be left out: the first kernel interface that also guards truncating (Linux 6.2).
const NEEDED: ABI = ABI::V3;
/// What is taken when it is there.
const WANTED: ABI = ABI::V6;

/// Programs and their libraries.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Read, never written: the system's settings that programs need, and what the kernel tells about itself. The kernel lets
/// no process inside read the memory or environment of one outside in `/proc`.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];

/// Folders beside `bin` in a tree of programs that lies in a home.
const BESIDE: &[&str] = &[
    "lib",
    "lib64",
    "lib32",
    "libexec",
    "share",
    "include",
    "versions",
    "plugins",
    "completions",
    "install",
    "installs",
    "image",
    "pkg",
    "conf",
    "jmods",
    "ssl",
    "node_modules",
    "toolchains",
    "libs",
    "modules",
    "version",
];

/// Devices that are harmless to write to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Rules that are ready to be enforced.
pub(super) struct LandlockRules {
    rules: RulesetCreated,
    /// What they open and is there.
    pub(super) places: KeptPlaces,
}

/// The rules for what may be reached.
pub(super) fn rules(reach: &FileAccess) -> Result<LandlockRules, Error> {
    let none = |error: landlock::RulesetError| Error::NoLandlock(error.to_string());
    let (rules, write) = written(ruleset().map_err(none)?, reach)?;
    let read = looked_at(reach);
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = rules
        .add_rules(landlock::path_beneath_rules(&read, AccessFs::from_read(WANTED)))
        .and_then(|rules| rules.add_rules(landlock::path_beneath_rules(DEVICES, devices)))
        .map_err(none)?;
    Ok(LandlockRules { rules, places: KeptPlaces { write, read } })
}

impl LandlockRules {
    /// With the folder of shared memory, where that is the process's own.
    pub(super) fn with_shared_memory(self) -> Result<Self, Error> {
        let Self { rules, places } = self;
        let shared =
            landlock::path_beneath_rules([SHARED_MEMORY], AccessFs::from_all(WANTED) & !AccessFs::IoctlDev);
        let rules = rules.add_rules(shared).map_err(|error| Error::NoLandlock(error.to_string()))?;
        Ok(Self { rules, places })
    }

    /// Enforces them on this process and all it becomes or starts.
    pub(super) fn enforce(self) -> Result<(), Error> {
        let status = self.rules.restrict_self().map_err(|error| Error::NoLandlock(error.to_string()))?;
        match status.ruleset {
            RulesetStatus::NotEnforced => Err(Error::NoLandlock("it is switched off".to_owned())),
            _ => Ok(()),
        }
    }
}

fn ruleset() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::AbstractUnixSocket)?
        .scope(Scope::Signal)?
        .create()
}

fn written(mut rules: RulesetCreated, reach: &FileAccess) -> Result<(RulesetCreated, Vec<PathBuf>), Error> {
    let mut places = Vec::new();
    for folder in &reach.write {
        let bad = |why: String| Error::Folder(folder.display().to_string(), why);
        let folder = folder.canonicalize().map_err(|error| bad(error.to_string()))?;
        if let Some(hidden) = shows(&folder, &reach.hide) {
            return Err(Error::Exposed {
                hidden: hidden.display().to_string(),
                folder: folder.display().to_string(),
            });
        }
        let handle = PathFd::new(&folder).map_err(|error| bad(error.to_string()))?;
        let rule = PathBeneath::new(handle, AccessFs::from_all(WANTED) & !AccessFs::IoctlDev);
        rules = rules.add_rule(rule).map_err(|error| bad(error.to_string()))?;
        places.push(folder);
    }
    Ok((rules, places))
}

/// The real paths of what may be read, as far as this user can open it.
fn looked_at(reach: &FileAccess) -> Vec<PathBuf> {
    let named = PROGRAMS.iter().chain(SETTINGS).map(PathBuf::from);
    let homes = homes(reach.home.as_deref());
    let linked = reach.programs.iter().flat_map(|folder| linked(folder, &homes));
    let programs = reach.programs.iter().cloned().chain(linked).flat_map(|folder| prefix(&folder, &homes));
    let places = named.chain(of_java()).chain(reach.read.iter().cloned()).chain(programs);
    let there = places.filter_map(|place| place.canonicalize().ok());
    there.filter(|place| shows(place, &reach.hide).is_none() && PathFd::new(place).is_ok()).collect()
}

/// The hidden place that would be reached with `place`.
fn shows<'a>(place: &Path, hide: &'a [PathBuf]) -> Option<&'a Path> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let place = real(place);
    hide.iter().find(|hidden| real(hidden).starts_with(&place)).map(PathBuf::as_path)
}

/// A folder of programs, and the tree they were put into: `…/bin` goes with `…/lib`. Not when that tree holds a home, or
/// is one of those that keep secrets beside their programs.
fn prefix(folder: &Path, homes: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(folder) = folder.canonicalize() else { return Vec::new() };
    let holds_home =
        |place: &Path| homes.iter().any(|home| home.starts_with(place)) || place == Path::new("/");
    let ends_in = |path: &Path, names: &[&str]| {
        path.file_name().is_some_and(|last| names.iter().any(|name| last == *name))
    };
    if holds_home(&folder) {
        return Vec::new();
    }
    let tree = folder.parent().filter(|tree| {
        ends_in(&folder, &["bin", "sbin", "shims"])
            && !holds_home(tree)
            && !ends_in(tree, &[".cargo", ".local", ".config"])
    });
    let is_in_home = homes.iter().any(|home| folder.starts_with(home));
    let trees: Vec<PathBuf> = match tree {
        // What programs need of it; settings and tokens may lie beside.
        Some(tree) if is_in_home => {
            // The sources of a toolchain of Go are part of it; those beside a person's own programs are not.
            let source = tree.join("src").canonicalize().ok().filter(|_| tree.join("pkg/tool").is_dir());
            let beside = BESIDE.iter().map(|name| tree.join(name)).filter(|part| part.exists());
            beside.chain(source).collect()
        }
        tree => tree.map(Path::to_owned).into_iter().collect(),
    };
    trees.into_iter().chain([folder.clone()]).collect()
}

/// Folders in which the targets of links in a folder of a home are: what is installed there is often a link to elsewhere.
fn linked(folder: &Path, homes: &[PathBuf]) -> Vec<PathBuf> {
    const MOST: usize = 2_000;
    if !folder.canonicalize().is_ok_and(|folder| homes.iter().any(|home| folder.starts_with(home))) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    // A folder of programs comes with its tree; of any other only the file itself.
    let targets = links.filter_map(|entry| entry.path().canonicalize().ok()).map(|target| {
        let folder = target.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "bin"));
        folder.map_or_else(|| target.clone(), Path::to_owned)
    });
    targets.collect::<BTreeSet<PathBuf>>().into_iter().collect()
}

/// Settings of Java and Maven that Debian keeps in `/etc`, without those that may hold passwords.
fn of_java() -> Vec<PathBuf> {
    let below =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_java =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"java-"));
    let parts = below(Path::new("/etc")).filter(is_java).flat_map(|java| below(&java).collect::<Vec<_>>());
    let parts = parts.filter(|path| path.file_name().is_some_and(|name| name != "management"));
    parts.chain(["/etc/maven/m2.conf", "/etc/maven/logging"].map(PathBuf::from)).collect()
}

/// The homes of the people of this machine, and the one that is named.
fn homes(own: Option<&Path>) -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_people = text.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let number: u32 = fields.next()?.parse().ok()?;
        let home = fields.nth(2)?;
        (number == 0 || (1_000..65_534).contains(&number)).then(|| PathBuf::from(home))
    });
    let all = of_people.chain(own.map(Path::to_owned)).filter(|home| home.parent().is_some());
    all.flat_map(|home| [home.canonicalize().ok(), Some(home)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{prefix, shows};
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn programs_bring_their_tree_but_never_a_home_or_a_folder_of_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        for folder in ["bin", ".cargo/bin", ".local/bin", "node/bin", "node/lib", "node/private", "tools"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let outside = dir.path().canonicalize().unwrap().join("opt/node/bin");
        fs::create_dir_all(&outside).unwrap();
        let homes = [home.clone(), dir.path().join("other/home")];
        let of = |folder: &str| prefix(&home.join(folder), &homes);
        assert_eq!(
            of("node/bin"),
            [home.join("node/lib"), home.join("node/bin")],
            "and not what lies beside"
        );
        assert_eq!(prefix(&outside, &homes), [outside.parent().unwrap(), outside.as_path()]);
        assert_eq!(of("bin"), [home.join("bin")]);
        assert_eq!(of(".cargo/bin"), [home.join(".cargo/bin")]);
        assert_eq!(of(".local/bin"), [home.join(".local/bin")]);
        assert_eq!(of("tools"), [home.join("tools")]);
        assert_eq!(of("."), Vec::<PathBuf>::new());
        assert_eq!(of("../.."), Vec::<PathBuf>::new());
        assert_eq!(of("missing"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_place_that_holds_what_is_hidden_is_found_also_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let hidden = dir.path().join("tree/sessions");
        fs::create_dir_all(&hidden).unwrap();
        std::os::unix::fs::symlink(dir.path().join("tree"), dir.path().join("link")).unwrap();
        let hide = [hidden.clone()];
        assert_eq!(shows(&dir.path().join("link"), &hide), Some(hidden.as_path()));
        assert_eq!(shows(&hidden, &hide), Some(hidden.as_path()));
        assert_eq!(shows(&dir.path().join("tree/other"), &hide), None);
    }
}
