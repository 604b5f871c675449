//! Merges two comparisons.

use apus_units::{Bytes, Rate, Span};
use serde_json::{Value, json};

/// Adds the rows of another comparison. A number that only one comparison has is missing in the rows of the other one.
pub(super) fn add(own: &mut Value, theirs: &Value) {
    let name = |metric: &Value| metric["name"].as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut metrics = list(&own["metrics"]);
    let mut places = Vec::new();
    for metric in list(&theirs["metrics"]) {
        let known = metrics.iter().position(|one| name(one) == name(&metric));
        places.push(known.unwrap_or(metrics.len()));
        if known.is_none() {
            metrics.push(metric);
        }
    }
    // Rows share axes only if both comparisons vary the same settings.
    let keys = |one: &Value| list(&one["axes"]).iter().map(|axis| axis["key"].clone()).collect();
    let (own_keys, their_keys): (Vec<Value>, Vec<Value>) = (keys(own), keys(theirs));
    let common = own_keys == their_keys;
    let axes = if common { joined_axes(&own["axes"], &theirs["axes"]) } else { Vec::new() };
    let padded = |row: Value, numbers: Vec<Value>| {
        let mut row = row;
        row["numbers"] = Value::from(numbers);
        if !common {
            row["values"] = json!([]);
        }
        row
    };
    let mut rows: Vec<Value> = list(&own["rows"])
        .into_iter()
        .map(|row| {
            let mut numbers = list(&row["numbers"]);
            numbers.resize(metrics.len(), Value::Null);
            padded(row, numbers)
        })
        .collect();
    let own_rows = rows.len();
    rows.extend(list(&theirs["rows"]).into_iter().map(|row| {
        let mut numbers = vec![Value::Null; metrics.len()];
        for (place, number) in places.iter().zip(list(&row["numbers"])) {
            numbers[*place] = number;
        }
        padded(row, numbers)
    }));
    let distributions = joined_distributions(own, theirs, own_rows, rows.len());
    let caption = [&own["caption"], &theirs["caption"]].map(|text| text.as_str().unwrap_or(""));
    own["caption"] = Value::from(caption.join("; "));
    for key in ["reasons", "tables"] {
        let mut all = list(&own[key]);
        all.append(&mut list(&theirs[key]));
        own[key] = Value::from(all);
    }
    own["metrics"] = Value::from(metrics);
    own["axes"] = Value::from(axes);
    own["rows"] = Value::from(rows);
    own["distributions"] = Value::from(distributions);
    let longer = list(&theirs["quantiles"]);
    if longer.len() > list(&own["quantiles"]).len() {
        own["quantiles"] = Value::from(longer);
    }
}

/// Returns the number by which a value of a setting is sorted; `None` for words.
fn amount(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    let number = || text.parse::<f64>().ok();
    let time = || text.parse::<Span>().ok().map(|span| span.as_ps() as f64);
    let size = || text.parse::<Bytes>().ok().map(|bytes| bytes.get() as f64);
    let rate = || text.parse::<Rate>().ok().map(|rate| rate.as_gbps_f64());
    number().or_else(time).or_else(size).or_else(rate)
}

/// Returns the axes with the values of both comparisons, in ascending order if they are numbers.
fn joined_axes(own: &Value, theirs: &Value) -> Vec<Value> {
    let pairs = own.as_array().into_iter().flatten().zip(theirs.as_array().into_iter().flatten());
    let joined = pairs.map(|(own, theirs)| {
        let mut axis = own.clone();
        let mut values = own["values"].as_array().cloned().unwrap_or_default();
        for value in theirs["values"].as_array().into_iter().flatten() {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        if values.iter().all(|value| amount(value).is_some()) {
            values.sort_by(|a, b| amount(a).unwrap_or(0.0).total_cmp(&amount(b).unwrap_or(0.0)));
        }
        axis["values"] = Value::from(values);
        axis
    });
    joined.collect()
}

/// Returns the distributions of both comparisons by name, with empty ones for rows without the distribution.
fn joined_distributions(own: &Value, theirs: &Value, own_rows: usize, rows: usize) -> Vec<Value> {
    let list = |value: &Value| value["distributions"].as_array().cloned().unwrap_or_default();
    let empty = || json!([[], []]);
    let mut all: Vec<Value> = list(own);
    for one in &mut all {
        if let Some(of) = one["rows"].as_array_mut() {
            of.resize(rows, empty());
        }
    }
    for one in list(theirs) {
        let of = one["rows"].as_array().cloned().unwrap_or_default();
        let place = all.iter().position(|known| known["name"] == one["name"]);
        let place = place.unwrap_or_else(|| {
            all.push(json!({ "name": one["name"], "rows": vec![empty(); rows] }));
            all.len() - 1
        });
        for (row, points) in of.into_iter().enumerate() {
            all[place]["rows"][own_rows + row] = points;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::add;

    fn comparison(metrics: &[&str], axis: &str, row: &str, numbers: Value) -> Value {
        let metrics: Vec<Value> = metrics.iter().map(|name| json!({ "name": name })).collect();
        json!({ "caption": row, "metrics": metrics, "axes": [{ "key": axis, "values": [row] }],
                "rows": [{ "label": row, "values": [row], "numbers": numbers }], "reasons": [row],
                "distributions": [{ "name": axis, "rows": [[[1.0], [0.5]]] }], "quantiles": [12.706], "tables": [] })
    }

    #[test]
    fn rows_of_both_have_the_numbers_under_the_same_names() {
        let mut own = comparison(&["a", "b"], "size", "1kB", json!([[1], [2]]));
        add(&mut own, &comparison(&["b", "c"], "size", "2kB", json!([[3], [4]])));
        let names: Vec<&Value> =
            own["metrics"].as_array().expect("list").iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(own["rows"][0]["numbers"], json!([[1], [2], null]));
        assert_eq!(own["rows"][1]["numbers"], json!([null, [3], [4]]));
        assert_eq!(own["axes"][0]["values"], json!(["1kB", "2kB"]));
        assert_eq!(own["distributions"][0]["rows"], json!([[[1.0], [0.5]], [[1.0], [0.5]]]));
        assert_eq!(
            (&own["quantiles"], &own["reasons"]),
            (&json!([12.706]), &json!(["1kB", "2kB"]))
        );
    }

    #[test]
    fn values_of_an_axis_are_in_ascending_order() {
        let joined = |values: [&str; 3]| {
            let one = |value| comparison(&["a"], "size", value, json!([[1]]));
            let mut own = one(values[0]);
            values[1..].iter().for_each(|value| add(&mut own, &one(value)));
            own["axes"][0]["values"].clone()
        };
        assert_eq!(joined(["20us", "1ms", "30us"]), json!(["20us", "30us", "1ms"]));
        assert_eq!(joined(["10", "9", "0.5"]), json!(["0.5", "9", "10"]));
        assert_eq!(joined(["swift", "dctcp", "1"]), json!(["swift", "dctcp", "1"]));
    }

    #[test]
    fn rows_of_different_settings_have_no_common_axis() {
        let mut own = comparison(&["a"], "size", "1kB", json!([[1]]));
        add(&mut own, &comparison(&["a"], "load", "0.5", json!([[2]])));
        assert_eq!((&own["axes"], &own["rows"][1]["values"]), (&json!([]), &json!([])));
        // A distribution of one comparison is empty in the rows of the other.
        assert_eq!(own["distributions"][1]["rows"][0], json!([[], []]));
    }
}
