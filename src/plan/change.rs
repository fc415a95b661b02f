//! Changes of a plan: `plan_write`, `plan_update`, and the former `todo` read as `plan_write`.
//!
//! A change is checked whole before any of it counts: a refused one leaves the plan as it was.

use serde_json::Value;

use super::{MAX_PHASES, MAX_TASKS, MAX_TEXT, Phase, Plan, Status, Task};

/// Why a change was refused, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// A change as the model or the person asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// `plan_write`: the plan anew. A task with a text that it had before keeps its id and, when
    /// none is said, its status.
    Write(&'a Value),
    /// `plan_update`: some tasks changed, some added.
    Update(&'a Value),
    /// `todo`, the former name of `plan_write`: one phase called "Work".
    Todo(&'a Value),
}

impl Plan {
    /// Applies a change to a copy and answers it.
    ///
    /// # Errors
    /// When the change cannot be read, names a task or phase that is not there, or passes a bound.
    pub fn changed(&self, change: Change<'_>) -> Result<Self, PlanError> {
        let mut next = self.clone();
        match change {
            Change::Write(args) => next.write(args)?,
            Change::Update(args) => next.update(args)?,
            Change::Todo(args) => next.todo(args)?,
        }
        next.bounded()?;
        Ok(next)
    }

    fn write(&mut self, args: &Value) -> Result<(), PlanError> {
        let phases = list(args, "phases")?
            .ok_or_else(|| PlanError("phases is missing: give at least one phase".to_owned()))?;
        if let Some(title) = text(args, "title")? {
            self.title = title;
        }
        self.header(args)?;
        if let Some(findings) = texts(args, "findings")? {
            self.findings = findings;
        }
        let known: Vec<Task> = self.tasks().cloned().collect();
        let old: Vec<(String, String)> = self
            .phases
            .iter()
            .map(|phase| (phase.title.clone(), phase.id.clone()))
            .collect();
        let mut used = Vec::new();
        let mut made = Vec::new();
        for phase in phases {
            let title = text(phase, "title")?
                .ok_or_else(|| PlanError("a phase has no title".to_owned()))?;
            let id = old
                .iter()
                .find(|(name, id)| *name == title && !made.iter().any(|p: &Phase| p.id == *id))
                .map(|(_, id)| id.clone());
            let id = id.unwrap_or_else(|| self.phase_id());
            let mut tasks = Vec::new();
            for task in list(phase, "tasks")?.unwrap_or_default() {
                tasks.push(self.task(task, &known, &mut used)?);
            }
            made.push(Phase { id, title, tasks });
        }
        self.phases = made;
        Ok(())
    }

    fn update(&mut self, args: &Value) -> Result<(), PlanError> {
        if let Some(title) = text(args, "title")? {
            self.title = title;
        }
        self.header(args)?;
        self.findings
            .extend(texts(args, "findings")?.unwrap_or_default());
        let mut said = false;
        for entry in list(args, "tasks")?.unwrap_or_default() {
            said = true;
            let id = text(entry, "id")?
                .ok_or_else(|| PlanError("a task to change has no id".to_owned()))?;
            let new_status = status(entry)?;
            let new_text = text(entry, "text")?;
            let note = text(entry, "note")?;
            let known = self
                .tasks()
                .map(|task| task.id.clone())
                .collect::<Vec<_>>()
                .join(", ");
            let task = self.task_mut(&id).ok_or_else(|| {
                PlanError(if known.is_empty() {
                    format!("there is no task {id}: the plan is empty")
                } else {
                    format!("there is no task {id}; there are {known}")
                })
            })?;
            task.status = new_status.unwrap_or(task.status);
            if let Some(new_text) = new_text {
                task.text = new_text;
            }
            if let Some(note) = note {
                task.note = note;
            }
        }
        for entry in list(args, "add")?.unwrap_or_default() {
            said = true;
            let task = self.task(entry, &[], &mut Vec::new())?;
            let place = self.place(text(entry, "phase")?)?;
            place.tasks.push(task);
        }
        let header = ["title", "summary", "findings", "objectives"];
        if !said && !header.iter().any(|key| args.get(key).is_some()) {
            return Err(PlanError(
                "nothing to change: give tasks with their ids, or add".to_owned(),
            ));
        }
        Ok(())
    }

    fn todo(&mut self, args: &Value) -> Result<(), PlanError> {
        let todos = list(args, "todos")?.ok_or_else(|| PlanError("todos is missing".to_owned()))?;
        let mut tasks = Vec::new();
        for todo in todos {
            let mut task = serde_json::Map::new();
            let words = text(todo, "content")?.or(text(todo, "text")?);
            task.insert("text".to_owned(), words.into());
            if let Some(word) = text(todo, "status")? {
                let word = match word.as_str() {
                    "pending" => "todo",
                    "in_progress" => "doing",
                    "completed" => "done",
                    "cancelled" => "dropped",
                    other => other,
                };
                task.insert("status".to_owned(), word.into());
            }
            tasks.push(Value::Object(task));
        }
        self.write(&serde_json::json!({ "phases": [{ "title": "Work", "tasks": tasks }] }))
    }

    fn header(&mut self, args: &Value) -> Result<(), PlanError> {
        if let Some(summary) = text(args, "summary")? {
            self.summary = summary;
        }
        if let Some(objectives) = texts(args, "objectives")? {
            self.objectives = objectives;
        }
        Ok(())
    }

    /// A task from a text alone or an object; one that was there before keeps its id.
    fn task(
        &mut self,
        value: &Value,
        known: &[Task],
        used: &mut Vec<String>,
    ) -> Result<Task, PlanError> {
        let words = match value {
            Value::String(words) => non_empty(words),
            _ => text(value, "text")?,
        }
        .ok_or_else(|| PlanError("a task has no text".to_owned()))?;
        let before = known
            .iter()
            .find(|task| task.text == words && !used.contains(&task.id));
        let said = if value.is_object() {
            status(value)?
        } else {
            None
        };
        let note = if value.is_object() {
            text(value, "note")?
        } else {
            None
        };
        let task = Task {
            id: before.map_or_else(|| self.task_id(), |task| task.id.clone()),
            text: words,
            status: said.or(before.map(|task| task.status)).unwrap_or_default(),
            note: note
                .or(before.map(|task| task.note.clone()))
                .unwrap_or_default(),
        };
        used.push(task.id.clone());
        Ok(task)
    }

    /// The phase of that id or title, made anew when it is a new title; the last one when none is
    /// said.
    fn place(&mut self, named: Option<String>) -> Result<&mut Phase, PlanError> {
        let Some(named) = named else {
            return self.phases.last_mut().ok_or_else(|| {
                PlanError("there is no phase to add to: write a plan first".to_owned())
            });
        };
        let at = self
            .phases
            .iter()
            .position(|phase| phase.id == named || phase.title == named);
        if at.is_none() {
            let id = self.phase_id();
            self.phases.push(Phase {
                id,
                title: named,
                tasks: Vec::new(),
            });
        }
        match at {
            Some(at) => self.phases.get_mut(at),
            None => self.phases.last_mut(),
        }
        .ok_or_else(|| PlanError("there is no phase to add to".to_owned()))
    }

    fn phase_id(&mut self) -> String {
        self.next.phase += 1;
        format!("p{}", self.next.phase)
    }

    fn task_id(&mut self) -> String {
        self.next.task += 1;
        format!("t{}", self.next.task)
    }

    fn bounded(&self) -> Result<(), PlanError> {
        let over = |what: &str, have: usize, most: usize| {
            Err(PlanError(format!(
                "the plan would have {have} {what}; at most {most} are kept"
            )))
        };
        if self.phases.len() > MAX_PHASES {
            return over("phases", self.phases.len(), MAX_PHASES);
        }
        let tasks = self.tasks().count();
        if tasks > MAX_TASKS {
            return over("tasks", tasks, MAX_TASKS);
        }
        if self.findings.len() > MAX_TASKS || self.objectives.len() > MAX_TASKS {
            let have = self.findings.len().max(self.objectives.len());
            return over("findings or objectives", have, MAX_TASKS);
        }
        let longest = self
            .tasks()
            .flat_map(|task| [&task.text, &task.note])
            .chain(self.phases.iter().map(|phase| &phase.title))
            .chain(&self.findings)
            .chain(&self.objectives)
            .chain([&self.title, &self.summary])
            .map(|words| words.chars().count())
            .max()
            .unwrap_or(0);
        if longest > MAX_TEXT {
            return over("characters in one text", longest, MAX_TEXT);
        }
        Ok(())
    }
}

fn non_empty(words: &str) -> Option<String> {
    let words = words.trim();
    (!words.is_empty()).then(|| words.to_owned())
}

fn text(args: &Value, key: &str) -> Result<Option<String>, PlanError> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(words)) => Ok(non_empty(words)),
        Some(_) => Err(PlanError(format!("{key} must be a text"))),
    }
}

fn texts(args: &Value, key: &str) -> Result<Option<Vec<String>>, PlanError> {
    let Some(entries) = list(args, key)? else {
        return Ok(None);
    };
    entries
        .iter()
        .map(|entry| match entry {
            Value::String(words) => Ok(words.trim().to_owned()),
            _ => Err(PlanError(format!("{key} must be a list of texts"))),
        })
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}

fn list<'a>(args: &'a Value, key: &str) -> Result<Option<&'a [Value]>, PlanError> {
    match args.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(entries)) => Ok(Some(entries)),
        Some(_) => Err(PlanError(format!("{key} must be a list"))),
    }
}

fn status(value: &Value) -> Result<Option<Status>, PlanError> {
    match text(value, "status")?.as_deref() {
        None => Ok(None),
        Some("todo") => Ok(Some(Status::Todo)),
        Some("doing") => Ok(Some(Status::Doing)),
        Some("done") => Ok(Some(Status::Done)),
        Some("dropped") => Ok(Some(Status::Dropped)),
        Some(other) => Err(PlanError(format!(
            "{other} is not a status: todo, doing, done or dropped"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written() -> Plan {
        Plan::default()
            .changed(Change::Write(&json!({
                "title": "Fix the login test",
                "phases": [{ "title": "Find", "tasks": ["read the test", { "text": "run it", "status": "doing" }] }],
            })))
            .unwrap()
    }

    #[test]
    fn ids_are_given_here_and_never_used_twice() {
        let plan = written();
        let ids: Vec<_> = plan.tasks().map(|t| t.id.as_str()).collect();
        assert_eq!(ids, ["t1", "t2"]);
        let again = plan
            .changed(Change::Write(&json!({
                "phases": [{ "title": "Find", "tasks": ["run it", "mend it"] }],
            })))
            .unwrap();
        let ids: Vec<_> = again.tasks().map(|t| t.id.as_str()).collect();
        assert_eq!(
            ids,
            ["t2", "t3"],
            "a kept task keeps its id, t1 is not given again"
        );
        assert_eq!(again.phases.first().map(|p| p.id.as_str()), Some("p1"));
        assert_eq!(again.tasks().next().map(|t| t.status), Some(Status::Doing));
    }

    #[test]
    fn an_update_changes_what_it_names_and_nothing_when_one_part_is_wrong() {
        let plan = written();
        let done = plan
            .changed(Change::Update(&json!({
                "tasks": [{ "id": "t1", "status": "done", "note": "it was the clock" }],
                "add": [{ "text": "mend it" }],
            })))
            .unwrap();
        assert_eq!(
            done.tasks()
                .map(|t| (t.id.as_str(), t.status.word()))
                .collect::<Vec<_>>(),
            [("t1", "done"), ("t2", "doing"), ("t3", "todo")]
        );
        for (wrong, says) in [
            (
                json!({ "tasks": [{ "id": "t9", "status": "done" }] }),
                "there is no task t9; there are t1, t2",
            ),
            (
                json!({ "tasks": [{ "id": "t1", "status": "finished" }] }),
                "finished is not a status: todo, doing, done or dropped",
            ),
            (
                json!({}),
                "nothing to change: give tasks with their ids, or add",
            ),
            (json!({ "tasks": "t1" }), "tasks must be a list"),
        ] {
            assert_eq!(
                plan.changed(Change::Update(&wrong))
                    .unwrap_err()
                    .to_string(),
                says
            );
        }
    }

    #[test]
    fn a_task_is_added_to_the_phase_it_names_or_to_a_new_one() {
        let plan = written()
            .changed(Change::Update(&json!({ "add": [
                { "phase": "p1", "text": "a" },
                { "phase": "Find", "text": "b" },
                { "phase": "Mend", "text": "c" },
            ]})))
            .unwrap();
        let shape: Vec<_> = plan
            .phases
            .iter()
            .map(|p| (p.id.as_str(), p.title.as_str(), p.tasks.len()))
            .collect();
        assert_eq!(shape, [("p1", "Find", 4), ("p2", "Mend", 1)]);
    }

    #[test]
    fn todo_is_one_phase_called_work() {
        let plan = Plan::default()
            .changed(Change::Todo(&json!({ "todos": [
                { "content": "a", "status": "pending" },
                { "content": "b", "status": "in_progress" },
                { "content": "c", "status": "completed" },
                { "content": "d", "status": "cancelled" },
            ]})))
            .unwrap();
        assert_eq!(plan.phases.len(), 1);
        assert_eq!(plan.phases.first().map(|p| p.title.as_str()), Some("Work"));
        let words: Vec<_> = plan.tasks().map(|t| t.status.word()).collect();
        assert_eq!(words, ["todo", "doing", "done", "dropped"]);
    }

    #[test]
    fn bounds_refuse_with_the_number() {
        let many: Vec<_> = (0..=MAX_TASKS).map(|n| format!("task {n}")).collect();
        let error = Plan::default()
            .changed(Change::Write(
                &json!({ "phases": [{ "title": "x", "tasks": many }] }),
            ))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the plan would have 201 tasks; at most 200 are kept"
        );
    }
}
