package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"oauth-server/internal/simulate"
)

var (
	//go:embed report.html
	page string
	//go:embed report.css
	css string
	//go:embed report.js
	script string

	pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{"series": func() int { return 1 + len(tints) }}).Parse(page))
)

// maxClients is the maximum number of rows in the table of clients: a page with more is slow in a
// browser.
const maxClients = 1000

// view has the content of the page.
type view struct {
	Policy   template.HTML // content policy of the page, in its head
	CSS      template.CSS
	Script   template.JS
	Over     string
	Sentence string
	Notes    []string
	Figures  []figure
	Charts   []*diagram
	Clients  *Table
	WhatIf   *whatIf
	Targets  []*target
	Lines    []figure
	Files    *Table
	Causes   *Table
	Limits   []simulate.PolicyFile // policies that decided the requests
	Found    string                // the file of the found limits
}

// figure is a headline.
type figure struct {
	Name, Value, Note string
	Alarm             bool
}

// Write writes the page of a result to w.
func Write(w io.Writer, r *simulate.Result) error {
	v := view{
		Policy: contentPolicy(), CSS: template.CSS(css), Script: template.JS(script), //nolint:gosec // G203: both are ours
		Over: over(r), Sentence: Sentence(r), Notes: r.Notes, Figures: headlines(r),
		Lines: lines(&r.Lines), Files: files(r.Lines.Files), Causes: causes(r.Lines.Causes), Found: printableLines(r.Found), WhatIf: whatIfOf(r.WhatIf),
	}
	if len(r.Clients) > 0 {
		v.Clients = Clients(r, maxClients)
	}
	for _, f := range r.Policies {
		v.Limits = append(v.Limits, simulate.PolicyFile{Name: printable(f.Name), Text: printableLines(f.Text)})
	}
	v.Charts = overTime(r)
	for i := range r.Targets {
		v.Targets = append(v.Targets, targetOf(&r.Targets[i]))
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	_, err := out.WriteTo(w)
	return err
}

// contentPolicy lets the page run only its own script, and load nothing. Styles are inline: each
// chart has the colours of its series. No text from a log gets into a style.
func contentPolicy() template.HTML {
	sum := sha256.Sum256([]byte(script))
	return template.HTML(fmt.Sprintf( //nolint:gosec // G203: made here
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%s'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">`,
		base64.StdEncoding.EncodeToString(sum[:])))
}
