package trace

import (
	_ "embed"
	"encoding/json"
	"html"
	"io"
	"math"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
)

//go:embed page.html
var page string

//go:embed page.css
var style string

// pageData is what the page's script reads: the report, and the runs as one array per property, which is shorter in
// JSON than one object per run. Times are nanoseconds.
type pageData struct {
	Report   *Report      `json:"report"`
	Span     float64      `json:"span"`
	Ops      []pageOp     `json:"ops"`
	Runs     pageRuns     `json:"runs"`
	Launches []pageLaunch `json:"launches"`
	Critical []int        `json:"critical"` // indices of the runs on the critical path
	Chunks   pageChunks   `json:"chunks"`
}

type pageOp struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Instance string   `json:"instance"`
	Nodes    []string `json:"nodes"`
}

type pageRuns struct {
	Segment   []int `json:"segment"`
	Launch    []int `json:"launch"`
	VEU       []int `json:"veu"`
	Order     []int `json:"order"`
	SM        []int `json:"sm"`
	Op        []int `json:"op"`
	RTask     []int `json:"rtask"`
	Begun     []int `json:"begun"`
	Loaded    []int `json:"loaded"`
	Ready     []int `json:"ready"`
	Started   []int `json:"started"`
	Computed  []int `json:"computed"`
	Published []int `json:"published"`
	Stall     []int `json:"stall"`
	Streamed  []int `json:"streamed"`
	From      []int `json:"from"` // the run whose results came last of those it waited for, or -1
}

// pageChunks are the copies of streamed weights, as one array per property.
type pageChunks struct {
	Run    []int `json:"run"`
	Bytes  []int `json:"bytes"`
	Issued []int `json:"issued"`
	Landed []int `json:"landed"`
}

type pageLaunch struct {
	Name  string `json:"name"`
	Begin int    `json:"begin"`
	End   int    `json:"end"`
	VEUs  int    `json:"veus"`
}

// WriteHTML writes a web page that shows the timeline and the report. It loads nothing else, so it can be mailed and
// opened without a network.
func (t *Timeline) WriteHTML(w io.Writer, r *Report) error {
	data, err := json.Marshal(t.pageData(r)) // escapes what could end the script element
	if err != nil {
		return err
	}
	return WritePage(w, page, t.Plan.Name, data)
}

// WritePage writes a page with its title, the style that all pages have in common, and data, which is JSON, in their
// places.
func WritePage(w io.Writer, page, title string, data []byte) error {
	title = html.EscapeString(diag.Printable(title))
	page = strings.NewReplacer("@TITLE@", title, "@STYLE@", strings.TrimSpace(style)).Replace(page)
	before, after, _ := strings.Cut(page, "@DATA@")
	for _, part := range []string{before, string(diag.PrintableJSON(data)), after} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

func (t *Timeline) pageData(r *Report) *pageData {
	d := &pageData{Report: r, Span: t.Span, Ops: []pageOp{}, Launches: []pageLaunch{}, Critical: []int{}}
	for _, o := range t.Plan.Ops {
		d.Ops = append(d.Ops, pageOp{o.Name, o.Kind, o.Instance, o.Nodes})
	}
	for _, l := range t.Launches {
		d.Launches = append(d.Launches, pageLaunch{l.name(), ns(l.Begin), ns(l.End), len(l.VEUs)})
	}
	for _, l := range t.Critical() {
		d.Critical = append(d.Critical, l.Run)
	}
	for i := range t.Chunks {
		x := &t.Chunks[i]
		k := &d.Chunks
		k.Run, k.Bytes = append(k.Run, x.Run), append(k.Bytes, x.Bytes)
		k.Issued, k.Landed = append(k.Issued, ns(x.Issued)), append(k.Landed, ns(x.Landed))
	}
	e := newEdges(t)
	c := &d.Runs
	for i := range t.Runs {
		x := &t.Runs[i]
		for _, v := range []struct {
			to *[]int
			v  int
		}{
			{&c.Segment, x.Segment}, {&c.Launch, x.Launch}, {&c.VEU, x.VEU}, {&c.Order, x.Order}, {&c.SM, x.SM},
			{&c.Op, x.Op},
			{&c.RTask, x.RTask}, {&c.Begun, ns(x.Begun)}, {&c.Loaded, ns(x.Loaded)}, {&c.Ready, ns(x.Ready)},
			{&c.Started, ns(x.Started)}, {&c.Computed, ns(x.Computed)}, {&c.Published, ns(x.Published)},
			{&c.Stall, ns(x.Stall)}, {&c.Streamed, x.Streamed}, {&c.From, e.last(i)},
		} {
			*v.to = append(*v.to, v.v)
		}
	}
	return d
}

func ns(x float64) int { return int(math.Round(x)) }
