//! Which files a confined process can open: Landlock.
//!
//! What may be read besides the folder is named here, place by place: programs and what they need, and of `/etc` only what
//! holds no secret. A home folder is never opened as a whole, and neither is a place that holds what is to be hidden.

use super::namespaces::Places;
use super::{Error, Reach};
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
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

/// Devices that are harmless to write to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Rules that are ready to be enforced.
pub(super) struct Rules {
    rules: RulesetCreated,
    /// What they open and is there.
    pub(super) places: Places,
}

/// The rules for what may be reached.
pub(super) fn rules(reach: &Reach) -> Result<Rules, Error> {
    let none = |error: landlock::RulesetError| Error::NoLandlock(error.to_string());
    let (rules, write) = written(ruleset().map_err(none)?, reach)?;
    let read = looked_at(reach);
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    let rules = rules
        .add_rules(landlock::path_beneath_rules(&read, AccessFs::from_read(WANTED)))
        .and_then(|rules| rules.add_rules(landlock::path_beneath_rules(DEVICES, devices)))
        .map_err(none)?;
    Ok(Rules { rules, places: Places { write, read } })
}

impl Rules {
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

fn written(mut rules: RulesetCreated, reach: &Reach) -> Result<(RulesetCreated, Vec<PathBuf>), Error> {
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
fn looked_at(reach: &Reach) -> Vec<PathBuf> {
    let named = PROGRAMS.iter().chain(SETTINGS).map(PathBuf::from);
    let programs = reach.programs.iter().flat_map(|folder| prefix(folder, reach.home.as_deref()));
    let places = named.chain(reach.read.iter().cloned()).chain(programs);
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
fn prefix(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let Ok(folder) = folder.canonicalize() else { return Vec::new() };
    let holds_home =
        |place: &Path| home.is_some_and(|home| home.starts_with(place)) || place == Path::new("/");
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
    tree.map(Path::to_owned).into_iter().chain([folder.clone()]).collect()
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
        for folder in ["bin", ".cargo/bin", ".local/bin", "node/bin", "tools"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let of = |folder: &str| prefix(&home.join(folder), Some(&home));
        assert_eq!(of("node/bin"), [home.join("node"), home.join("node/bin")]);
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
