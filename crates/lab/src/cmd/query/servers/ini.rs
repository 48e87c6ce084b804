//! Shards as Shard-Query's ini files have them: `[default]` with what all shards have in common, and a section for each
//! shard, whose name begins with `shard`.

use configparser::ini::Ini;
use spindle_base::Mistake;
use spindle_base::near;
use spindle_load::Endpoint;
use spindle_scatter::mapping::{Mapper, Mapping};

use super::ShardsFile;

const KEYS: [&str; 10] =
    ["user", "db", "password", "host", "port", "column", "mapper", "gearman", "inlist", "between"];
/// The section of what all shards have in common.
const DEFAULT: &str = "default";
const DEFAULT_PORT: u16 = 3306;

pub(super) fn parse(text: &str) -> Result<ShardsFile, Mistake> {
    let mut ini = Ini::new_cs();
    // A password may contain them.
    ini.set_inline_comment_symbols(Some(&[]));
    ini.read(text.to_owned()).map_err(Mistake::new)?;
    check_keys(&ini)?;
    let default = |key: &str| ini.get(DEFAULT, key);
    let column = default("column").ok_or_else(|| Mistake::at("default.column", "is missing"))?;
    if let Some(other) = default("mapper").filter(|mapper| mapper != "hash") {
        let words =
            format!("`{other}` is not known here; a directory is written in the TOML file of --config");
        return Err(Mistake::at("default.mapper", words));
    }
    let shards = ini
        .sections()
        .into_iter()
        .filter(|section| is_shard(section))
        .map(|section| Ok((section.clone(), endpoint(&ini, &section)?)))
        .collect::<Result<Vec<_>, Mistake>>()?;
    if shards.is_empty() {
        return Err(Mistake::new("has no shard; write a section [shard1] with its host"));
    }
    let told = |(key, words): (&str, &str)| default(key).map(|_| format!("{key} is ignored: {words}"));
    let notices = [
        ("gearman", "fragments are sent over connections of their own"),
        ("inlist", "what divides a query is chosen for each"),
        ("between", "what divides a query is chosen for each"),
    ];
    Ok(ShardsFile {
        shards,
        mapping: Mapping { column, mapper: Mapper::Hash, ..Mapping::default() },
        notices: notices.into_iter().filter_map(told).collect(),
    })
}

fn is_shard(section: &str) -> bool {
    section.starts_with("shard")
}

fn check_keys(ini: &Ini) -> Result<(), Mistake> {
    for (section, properties) in ini.get_map_ref() {
        if section != DEFAULT && !is_shard(section) {
            return Err(Mistake::at(format!("[{section}]"), "is neither [default] nor a shard"));
        }
        if let Some(key) = properties.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let words = format!("unknown key{}", near::hint(key, &KEYS));
            return Err(Mistake::at(format!("{section}.{key}"), words));
        }
    }
    Ok(())
}

fn endpoint(ini: &Ini, section: &str) -> Result<Endpoint, Mistake> {
    let value = |key: &str| ini.get(section, key).or_else(|| ini.get(DEFAULT, key));
    let needed = |key: &str| {
        let words = "is missing, here and in [default]";
        value(key).ok_or_else(|| Mistake::at(format!("{section}.{key}"), words))
    };
    let port = match value("port") {
        None => DEFAULT_PORT,
        Some(port) => port
            .parse()
            .map_err(|_| Mistake::at(format!("{section}.port"), format!("`{port}` is no port")))?,
    };
    Ok(Endpoint::MysqlTcp {
        host: needed("host")?,
        port,
        user: needed("user")?,
        password: value("password").unwrap_or_default(),
        database: needed("db")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form of the study's files.
    const STUDY: &str = "[default]\nuser=root\ndb=ontime\npassword=\nport=5029\ncolumn=date_id\nmapper=hash\n\
                         gearman=127.0.0.1:7000\ninlist=*\nbetween=*\n\n[shard1]\nhost=10.0.0.1\ndb=ontime1\n\n\
                         [shard2]\nhost=10.0.0.2\n";

    #[track_caller]
    fn check_mistake(text: &str, expect: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn a_file_of_the_study_is_read() {
        let file = parse(STUDY).unwrap();
        let shard = |host: &str, database: &str| Endpoint::MysqlTcp {
            host: host.to_owned(),
            port: 5029,
            user: "root".to_owned(),
            password: String::new(),
            database: database.to_owned(),
        };
        let expect = [
            ("shard1".to_owned(), shard("10.0.0.1", "ontime1")),
            ("shard2".to_owned(), shard("10.0.0.2", "ontime")),
        ];
        assert_eq!(file.shards, expect);
        assert_eq!(file.mapping.column, "date_id");
        assert_eq!(file.notices.len(), 3);
    }

    #[test]
    fn a_mistake_is_told_at_its_key() {
        check_mistake("[default]\ncolumn=a\n", "has no shard; write a section [shard1] with its host");
        check_mistake(
            &STUDY.replace("column", "colum"),
            "default.colum: unknown key; did you mean `column`?",
        );
        check_mistake(&STUDY.replace("5029", "x"), "shard1.port: `x` is no port");
        check_mistake(&STUDY.replace("user=root\n", ""), "shard1.user: is missing, here and in [default]");
        check_mistake(&STUDY.replace("[shard1]", "[server1]"), "[server1]: is neither [default] nor a shard");
    }
}
