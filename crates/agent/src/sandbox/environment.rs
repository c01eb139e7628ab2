//! What a confined process knows of its surroundings: an environment made anew, and the places of programs.
//!
//! No key of ours is in it, and git is told to run nothing that a repository brings along.

use super::Reach;
use super::home::Home;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What processes may know of our environment. No key is ever in these.
const KNOWN: &[&str] = &["LANG", "LC_ALL", "TZ", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "GOROOT"];

/// Settings of git that win over those of a repository: it runs no hooks, monitors, pagers, editors and helpers of theirs.
/// A command line (`git -c …`) still wins over these.
const GIT: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.sshCommand", "ssh"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("core.askPass", "true"),
    ("sequence.editor", "true"),
    ("credential.helper", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gpg.program", "gpg"),
    ("protocol.ext.allow", "never"),
];

/// The surroundings of this process, as far as confined ones may know them.
pub(crate) struct Environment {
    path: OsString,
    home: Option<PathBuf>,
    rustup: Option<PathBuf>,
    known: Vec<(&'static str, OsString)>,
}

impl Environment {
    pub(crate) fn here() -> Self {
        let var = |name: &'static str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = var("HOME").map(PathBuf::from);
        let rustup = var("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".rustup")));
        let mut known: Vec<_> = KNOWN.iter().filter_map(|name| Some((*name, real(var(name)?)))).collect();
        if !known.iter().any(|(name, _)| *name == "LANG") {
            known.push(("LANG", "C.UTF-8".into()));
        }
        Self {
            path: var("PATH").map_or_else(|| "/usr/local/bin:/usr/bin:/bin".into(), |path| absolute(&path)),
            rustup: rustup.and_then(|folder| folder.canonicalize().ok()).filter(|folder| folder.is_dir()),
            home,
            known,
        }
    }

    pub(crate) fn shell(&self) -> &'static str {
        if std::env::split_paths(&self.path).any(|folder| folder.join("bash").is_file()) {
            "bash"
        } else {
            "sh"
        }
    }

    /// The home folder of our own user.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Folders of a program that the settings name: where it is, where a link leads to, and the same of the interpreter that
    /// its first line names. So what was installed with its own interpreter runs, wherever that is.
    pub(crate) fn programs_of(&self, program: &str) -> Vec<PathBuf> {
        let path = match program.contains('/') {
            true => Some(PathBuf::from(program)),
            false => std::env::split_paths(&self.path)
                .map(|folder| folder.join(program))
                .find(|path| path.is_file()),
        };
        let Some(path) = path.filter(|path| path.is_absolute()) else { return Vec::new() };
        let interpreter = interpreter(&path);
        let files = [Some(path), interpreter].into_iter().flatten();
        let real = files.flat_map(|file| [file.canonicalize().ok(), Some(file)]).flatten();
        real.filter_map(|file| file.parent().map(Path::to_owned)).collect()
    }

    /// What may be reached by a process that writes to `write` and the private home.
    pub(crate) fn reach(&self, mut write: Vec<PathBuf>, home: &Home) -> Reach {
        write.extend([home.home(), home.temporary()]);
        let told = |name: &str| self.known.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let tools = ["JAVA_HOME", "GOROOT"].iter().filter_map(|name| told(name)).map(PathBuf::from);
        Reach {
            write,
            programs: std::env::split_paths(&self.path).collect(),
            read: self.rustup.iter().cloned().chain(tools).filter(|folder| Path::is_dir(folder)).collect(),
            home: self.home.clone(),
            ..Reach::default()
        }
    }

    /// All variables of a process that has the private home.
    pub(crate) fn variables(self, home: &Home) -> Vec<(String, OsString)> {
        let known = self.known.into_iter().map(|(name, value)| (name.to_owned(), value));
        let own = [
            ("PATH", self.path),
            ("TERM", "dumb".into()),
            ("HOME", home.home().into()),
            ("TMPDIR", home.temporary().into()),
        ];
        let rustup = self.rustup.map(|rustup| ("RUSTUP_HOME".to_owned(), rustup.into()));
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        known.chain(own).chain(rustup).chain(git()).collect()
    }
}

fn git() -> impl Iterator<Item = (String, OsString)> {
    let settings = GIT.iter().enumerate().flat_map(|(at, (key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{at}"), OsString::from(key)),
            (format!("GIT_CONFIG_VALUE_{at}"), OsString::from(value)),
        ]
    });
    settings.chain([("GIT_CONFIG_COUNT".to_owned(), GIT.len().to_string().into())])
}

/// The interpreter that the first line of a script names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut start = [0; 256];
    let length = std::fs::File::open(script).and_then(|mut file| file.read(&mut start)).ok()?;
    let line = start[..length].split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let word = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    Some(PathBuf::from(word)).filter(|path| path.is_absolute())
}

/// The folders of `PATH` that are the same from everywhere: one that is not absolute would be a folder of the repository.
/// Links on the way to them are not there inside.
fn absolute(path: &OsString) -> OsString {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    std::env::join_paths(folders.map(|folder| folder.canonicalize().unwrap_or(folder))).unwrap_or_default()
}

/// The real path of a folder that a variable names; any other value as it is.
fn real(value: OsString) -> OsString {
    let path = Path::new(&value);
    path.canonicalize().ok().filter(|_| path.is_absolute()).map_or(value, PathBuf::into_os_string)
}

#[cfg(test)]
mod tests {
    use super::{Environment, absolute};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_program_brings_its_interpreter_and_what_links_lead_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["bin", "tool/bin", "python/bin"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("python/bin/python3"), "").unwrap();
        symlink(root.join("python/bin/python3"), root.join("tool/bin/python")).unwrap();
        std::fs::write(root.join("tool/bin/server"), format!("#!{}/tool/bin/python -s\nx\n", root.display()))
            .unwrap();
        symlink(root.join("tool/bin/server"), root.join("bin/server")).unwrap();
        let found = Environment::here().programs_of(root.join("bin/server").to_str().unwrap());
        assert_eq!(found, ["tool/bin", "bin", "python/bin", "tool/bin"].map(|folder| root.join(folder)));
        assert!(Environment::here().programs_of("./server").is_empty());
    }

    #[test]
    fn a_relative_folder_of_programs_is_left_out() {
        assert_eq!(absolute(&"/usr/bin:.::bin:/gone/bin".into()), "/usr/bin:/gone/bin");
    }
}
