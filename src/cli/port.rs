//! Who has a port, where the system lets us see it.

/// The program that listens on a TCP port: its name and process id. Only Linux tells, and only of
/// this user's processes.
pub(super) fn holder(port: u16) -> Option<(String, u32)> {
    let inodes: Vec<u64> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| listeners(&table, port))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let Ok(files) = std::fs::read_dir(entry.path().join("fd")) else {
            continue;
        };
        for file in files.flatten() {
            let target = std::fs::read_link(file.path()).unwrap_or_default();
            let inode = target
                .to_str()
                .and_then(|text| text.strip_prefix("socket:["))
                .and_then(|text| text.strip_suffix(']'))
                .and_then(|text| text.parse().ok());
            if inode.is_some_and(|inode| inodes.contains(&inode)) {
                let name = std::fs::read_to_string(entry.path().join("comm")).ok()?;
                return Some((crate::text::escape::visible_line(name.trim()), pid));
            }
        }
    }
    None
}

/// The inodes of sockets that listen on a port, in a table of `/proc/net`.
fn listeners(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut columns = line.split_whitespace();
            let local = columns.nth(1)?;
            let state = columns.nth(1)?;
            let inode = columns.nth(5)?;
            let at = local.rsplit_once(':')?.1;
            let same = u16::from_str_radix(at, 16).ok()? == port && state == LISTEN;
            same.then(|| inode.parse().ok()).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_with_its_program() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let table = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n   \
             1: 0100007F:{port:04X} 00000000:0000 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0\n"
        );
        assert_eq!(listeners(&table, port), [4711]);
        assert_eq!(listeners(&table, port.wrapping_add(1)), Vec::<u64>::new());
        if cfg!(target_os = "linux") {
            let (_, pid) = holder(port).unwrap();
            assert_eq!(pid, std::process::id());
        }
    }
}
