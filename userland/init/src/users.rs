//! Who runs the command: names looked up in the guest's own /etc/passwd and /etc/group.

use std::io;

/// What a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
    /// All groups, the first among them.
    pub groups: Vec<u32>,
    pub name: String,
    pub home: String,
}

/// Finds `USER` or `USER:GROUP`, each a name or a number, in the texts of the two files.
pub fn find(wanted: &str, passwd: &str, group: &str) -> io::Result<Identity> {
    let (user, own_group) = match wanted.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (wanted, None),
    };
    let mut identity = by_user(user, passwd)?;
    match own_group {
        Some(name) => {
            let line = lines(group).find(|line| line[0] == name);
            let number = line.and_then(|line| number(line.get(2)));
            let number = number.or_else(|| name.parse().ok());
            identity.gid = number.ok_or_else(|| unknown("group", name))?;
            identity.groups = vec![identity.gid];
        }
        None => {
            let is_member = |line: &Vec<&str>| {
                line.get(3).is_some_and(|all| all.split(',').any(|one| one == identity.name))
            };
            let others = lines(group).filter(is_member).filter_map(|line| number(line.get(2)));
            identity.groups = std::iter::once(identity.gid).chain(others).collect();
            identity.groups.dedup();
        }
    }
    Ok(identity)
}

fn by_user(user: &str, passwd: &str) -> io::Result<Identity> {
    let known = |line: &Vec<&str>| line[0] == user || line.get(2) == Some(&user);
    if let Some(line) = lines(passwd).find(known) {
        let (Some(uid), Some(gid)) = (number(line.get(2)), number(line.get(3))) else {
            return Err(unknown("user", user));
        };
        let home = line.get(5).filter(|home| !home.is_empty()).unwrap_or(&"/");
        let (name, home) = (line[0].to_owned(), (*home).to_owned());
        return Ok(Identity { uid, gid, groups: Vec::new(), name, home });
    }
    let uid = match user {
        "root" => 0,
        number => number.parse().map_err(|_| unknown("user", user))?,
    };
    let home = if uid == 0 { "/root" } else { "/" };
    Ok(Identity { uid, gid: 0, groups: Vec::new(), name: user.to_owned(), home: home.to_owned() })
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.is_empty()).map(|line| line.split(':').collect())
}

fn number(field: Option<&&str>) -> Option<u32> {
    field.and_then(|field| field.parse().ok())
}

fn unknown(what: &str, name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{name}: the root knows no such {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:100::/home/ann:\nbad:x:y:z\n";
    const GROUP: &str = "root:x:0:\nusers:x:100:\naudio:x:29:bob,ann\nvideo:x:44:annie\n";

    fn found(wanted: &str) -> (u32, u32, Vec<u32>) {
        let identity = find(wanted, PASSWD, GROUP).unwrap();
        (identity.uid, identity.gid, identity.groups)
    }

    #[test]
    fn users_are_found_by_name_and_number() {
        assert_eq!(found("ann"), (1000, 100, vec![100, 29]));
        assert_eq!(found("1000"), (1000, 100, vec![100, 29]));
        assert_eq!(found("ann:video"), (1000, 44, vec![44]));
        assert_eq!(found("7:8"), (7, 8, vec![8]));
        assert_eq!(found("7"), (7, 0, vec![0]));
        assert_eq!(find("ann", PASSWD, GROUP).unwrap().home, "/home/ann");
        assert_eq!(find("root", "", "").unwrap().home, "/root");
    }

    #[test]
    fn who_is_not_there_is_named() {
        for wanted in ["bob", "bad", "ann:wheel", "", "-1"] {
            assert!(find(wanted, PASSWD, GROUP).is_err(), "{wanted:?}");
        }
    }
}
