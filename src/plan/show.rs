//! The plan as text for a model, and as the entries that ACP's `plan` update carries.

use std::fmt;

use serde_json::{Value, json};

use super::{Plan, Status};

impl fmt::Display for Plan {
    /// One line a task: mark, id, text, note. What the plan tools answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("The plan is empty.");
        }
        if !self.title.is_empty() {
            writeln!(f, "{}", self.title)?;
        }
        if !self.summary.is_empty() {
            writeln!(f, "{}", self.summary)?;
        }
        for (name, entries) in [
            ("Objectives", &self.objectives),
            ("Findings", &self.findings),
        ] {
            if !entries.is_empty() {
                writeln!(f, "{name}:")?;
                for entry in entries {
                    writeln!(f, "- {entry}")?;
                }
            }
        }
        for phase in &self.phases {
            writeln!(f, "{} {}", phase.id, phase.title)?;
            for task in &phase.tasks {
                let mark = match task.status {
                    Status::Todo => ' ',
                    Status::Doing => '>',
                    Status::Done => 'x',
                    Status::Dropped => '-',
                };
                write!(f, "  [{mark}] {} {}", task.id, task.text)?;
                if !task.note.is_empty() {
                    write!(f, " ({})", task.note)?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

impl Plan {
    /// ACP's flat entries: dropped tasks are left out, the phase is not shown.
    pub fn entries(&self) -> Vec<Value> {
        self.tasks()
            .filter_map(|task| {
                let status = match task.status {
                    Status::Todo => "pending",
                    Status::Doing => "in_progress",
                    Status::Done => "completed",
                    Status::Dropped => return None,
                };
                Some(json!({ "content": task.text, "priority": "medium", "status": status }))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Change;
    use super::*;

    #[test]
    fn reads_as_a_list_with_marks() {
        let plan = Plan::default()
            .changed(Change::Write(&json!({
                "title": "Fix the login test",
                "summary": "The test fails on Mondays.",
                "objectives": ["green on every day"],
                "phases": [
                    { "title": "Find", "tasks": [{ "text": "read it", "status": "done", "note": "clock" }, { "text": "run it", "status": "doing" }] },
                    { "title": "Mend", "tasks": ["fix", { "text": "rewrite", "status": "dropped" }] },
                ],
            })))
            .unwrap();
        insta::assert_snapshot!(plan.to_string(), @r"
        Fix the login test
        The test fails on Mondays.
        Objectives:
        - green on every day
        p1 Find
          [x] t1 read it (clock)
          [>] t2 run it
        p2 Mend
          [ ] t3 fix
          [-] t4 rewrite
        ");
        assert_eq!(plan.entries().len(), 3);
    }
}
