package dashboards

import "strings"

// sources are the variables of every dashboard: the data source, and which instances to show.
// Each one offers what the ones before it leave.
func sources() []Variable {
	return []Variable{
		{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Current: map[string]any{}},
		choice("job", "Job", `label_values(oauth_build_info, job)`),
		choice("namespace", "Namespace", `label_values(oauth_build_info{job=~"$job"}, namespace)`),
		choice("instance", "Instance", `label_values(oauth_build_info{job=~"$job",namespace=~"$namespace"}, instance)`),
	}
}

// choice is a variable that selects some values of a label, or all of them. All includes series
// without the label.
func choice(name, label, query string) Variable {
	return Variable{
		Name: name, Label: label, Type: "query", Query: query, Datasource: prometheus,
		Refresh: 2, Sort: 1, Multi: true, IncludeAll: true, AllValue: ".*",
		Current: map[string]any{"text": []string{"All"}, "value": []string{"$__all"}},
	}
}

// RateOver returns the values of the variable $over, the range of the rates drawn beside limits.
// Prometheus computes a rate between the first and the last scrape in its range. So each range is a
// scrape interval (15 s) longer than its name, and a client that uses up 60 a minute at once is drawn
// at 60 a minute, not above the limit.
func RateOver() []Option {
	return []Option{
		{Text: "1 minute", Value: "75s", Selected: true},
		{Text: "5 minutes", Value: "315s"},
		{Text: "15 minutes", Value: "915s"},
		{Text: "1 hour", Value: "3615s"},
	}
}

func rateOver() Variable {
	options := RateOver()
	named := make([]string, 0, len(options))
	for _, o := range options {
		named = append(named, o.Text+" : "+o.Value)
	}
	return Variable{
		Name: "over", Label: "Rates over", Type: "custom", Query: strings.Join(named, ","), Options: options,
		Current: map[string]any{"text": options[0].Text, "value": options[0].Value},
	}
}

// changes are the annotations: vertical lines where limits changed.
func changes() []Annotation {
	return []Annotation{
		annotation("Limits", "red", "Limit {{limit}} ({{kind}}) of {{client_id}} changed",
			`max by (client_id, kind, limit) (changes(oauth_ratelimit_limit{$i}[75s])) > 0`),
		annotation("Policies", "blue", "Limits, modes or settings changed",
			`max by (config) (changes(oauth_config_revision{$i,config="policies"}[75s])) > 0`),
	}
}

func annotation(name, colour, title, expr string) Annotation {
	return Annotation{
		Name: name, Enable: true, Datasource: prometheus, IconColor: colour,
		Expr: selections.Replace(expr), Step: "60s", TitleFormat: title,
	}
}
