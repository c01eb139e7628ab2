//! Everything around the workers: trackers with issues, the model, MCP servers, settings.

use crate::tasks::course;
use crate::tasks::far::{Far, program, python};
use crate::tasks::run::{Place, Said, feed};
use komado_agent::source::TrackerKind;
use komado_provider::scripted::{ScriptedOptions, ScriptedServer as Model, ScriptedSteps};
use komado_testkit::tracker::{FakeIssue, TrackerServer as Tracker};
use serde_json::Value;
use std::process::Command;

pub(crate) const REPO: &str = "ann/tool";
pub(crate) const LABEL: &str = "coding agent";
const KEY: &str = "sesame";

pub(crate) struct Town {
    pub(crate) place: Place,
    pub(crate) github: Tracker,
    pub(crate) gitlab: Tracker,
    pub(crate) tasks: usize,
    model: Model,
    _far: Far,
}

impl Town {
    /// With so many issues, half of them at each tracker; over files, or in the store at an address.
    pub(crate) fn new(tasks: usize, store: Option<&str>) -> Self {
        let (github, gitlab) = (
            Tracker::start(TrackerKind::GitHub, KEY).unwrap(),
            Tracker::start(TrackerKind::GitLab, KEY).unwrap(),
        );
        for task in 0..tasks {
            let tracker = if task % 2 == 0 { &github } else { &gitlab };
            let issue = FakeIssue::new(course::title(task)).text("蓋が閉まりません。").label(LABEL).by("ann");
            tracker.add_issue(REPO, issue);
        }
        let script = ScriptedSteps::from(course::steps(tasks));
        let model = Model::start(ScriptedOptions {
            script,
            window: Some(32_000),
            keep: 0,
            ..ScriptedOptions::default()
        })
        .unwrap();
        let town = Self { place: Place::new(), github, gitlab, tasks, model, _far: Far::start() };
        town.place.settings(&town.settings(store));
        town
    }

    fn settings(&self, store: Option<&str>) -> String {
        let (python, program) = (python(), program());
        let (python, program) = (python.display(), program.display());
        let store =
            store.map(|url| format!("store: {{url: '{url}', lease_seconds: 2}}\n")).unwrap_or_default();
        format!(
            "{store}llm:\n  provider: here\n  here: {{dialect: openai, base_url: '{model}/v1', model: m, context_length: 32000}}\n\
             work: {{hidden_seconds: 3, pause_seconds: 0, poll_seconds: 1, tries: 100, grace_seconds: 10}}\n\
             mcp_servers:\n  time: {{command: '{python}', args: [-m, mcp_server_time, --local-timezone, Asia/Tokyo], start_seconds: 300}}\n  \
             near: {{command: '{python}', args: ['{program}'], start_seconds: 300}}\n  far: {{url: '{far}', start_seconds: 300}}\n\
             github: {{base_url: '{github}', token: {KEY}, repos: [{REPO}], label: {LABEL}}}\n\
             gitlab: {{base_url: '{gitlab}', token: {KEY}, projects: [{REPO}], label: {LABEL}}}\n",
            model = self.model.url(),
            far = self._far.url,
            github = self.github.url(),
            gitlab = self.gitlab.url(),
        )
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(args);
        command.env("NO_PROXY", "127.0.0.1").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let Said { code, out, err } = feed(self.command(args), b"");
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        out
    }

    pub(crate) fn json_lines(&self, args: &[&str]) -> Vec<Value> {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        self.ok(&args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The issue of a task.
    pub(crate) fn issue(&self, task: usize) -> FakeIssue {
        let tracker = if task.is_multiple_of(2) { &self.github } else { &self.gitlab };
        let all = tracker.issues(REPO);
        all.into_iter().map(|(_, issue)| issue).find(|issue| issue.title == course::title(task)).unwrap()
    }

    /// Tasks that are done, as their trackers say.
    pub(crate) fn done(&self) -> usize {
        let is_done = |task: &usize| self.issue(*task).labels.contains(&format!("{LABEL} done"));
        (0..self.tasks).filter(is_done).count()
    }

    /// Requests that the model answered.
    pub(crate) fn turns(&self) -> usize {
        self.model.seen().iter().filter(|request| request.status == 200).count()
    }
}
