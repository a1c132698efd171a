package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// axis is an axis of a plot. A logarithmic axis has no place for zero.
type axis struct {
	name string
	log  bool
	text func(float64) string // of a tick
}

// scale maps values to 0…1, between the first and the last tick.
type scale struct {
	log      bool
	min, max float64
	ticks    []float64
}

func (a axis) scale(values []float64) scale {
	low, high := slices.Min(values), slices.Max(values)
	s := scale{log: a.log}
	if a.log {
		first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
		for e := first; e <= max(last, first+1); e++ {
			s.ticks = append(s.ticks, math.Pow(10, e))
		}
	} else {
		step := math.Pow(10, math.Floor(math.Log10(max(high, 1e-9)/4)))
		for _, by := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
			if high/step > 6 {
				step *= by
			}
		}
		for v := 0.0; v < high+step; v += step {
			s.ticks = append(s.ticks, v)
		}
	}
	s.min, s.max = s.ticks[0], s.ticks[len(s.ticks)-1]
	return s
}

func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log10(v/s.min) / math.Log10(s.max/s.min)
	}
	return (v - s.min) / (s.max - s.min)
}

// The plot's place in the picture; names of the lines are to its right.
const (
	width, height          = 760, 340
	left, right, top, foot = 70, 220, 16, 46
)

// style has the colours for light and dark. A line has a mark of its own, too.
const style = `<style>
svg{--back:#fff;--text:#1f2328;--grid:#d8dee4;--c0:#0a5fb4;--c1:#b3470f;--c2:#1a7f37;--c3:#8250df}
@media(prefers-color-scheme:dark){svg{--back:#0d1117;--text:#e6edf3;--grid:#30363d;--c0:#6cb6ff;--c1:#ffa657;--c2:#7ee787;--c3:#d2a8ff}}
text{font:12px system-ui,sans-serif;fill:var(--text)}
.grid{stroke:var(--grid)}
.line{fill:none;stroke-width:2}
</style>
`

// plot draws a chart, in colours that follow the reader's scheme.
func plot(title string, x, y axis, lines []Line) string {
	var xs, ys []float64
	for _, l := range lines {
		for _, p := range l.Points {
			xs, ys = append(xs, p[0]), append(ys, p[1])
		}
	}
	across, up := x.scale(xs), y.scale(ys)
	px := func(v float64) float64 { return left + across.at(v)*(width-left-right) }
	py := func(v float64) float64 { return height - foot - up.at(v)*(height-top-foot) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n%s", escaped(title), style)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="var(--back)"/>`+"\n", width, height)
	for _, v := range up.ticks {
		fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, py(v), width-right, left-8, py(v)+4, escaped(y.text(v)))
	}
	for _, v := range across.ticks {
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", px(v), top, height-foot, px(v), height-foot+18, escaped(x.text(v)))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-8, escaped(x.name))
	fmt.Fprintf(&b, `<text x="%d" y="%d" transform="rotate(-90 14 %d)" text-anchor="middle">%s</text>`+"\n", 14, (top+height-foot)/2, (top+height-foot)/2, escaped(y.name))
	names := namePlaces(lines, py)
	for i, l := range lines {
		var d strings.Builder
		for _, p := range l.Points {
			fmt.Fprintf(&d, "L%.1f %.1f", px(p[0]), py(p[1]))
		}
		colour := fmt.Sprintf("var(--c%d)", i%4)
		fmt.Fprintf(&b, `<path class="line" stroke="%s" d="M%s"/>`+"\n", colour, d.String()[1:])
		for _, p := range l.Points {
			fmt.Fprintf(&b, `<path fill="%s" d="%s"/>`, colour, mark(i, px(p[0]), py(p[1])))
		}
		fmt.Fprintf(&b, "\n"+`<path fill="%s" d="%s"/><text x="%d" y="%.1f">%s</text>`+"\n",
			colour, mark(i, width-right+18, names[i]), width-right+28, names[i]+4, escaped(l.Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// mark is a square, a triangle, a diamond or a triangle on its head.
func mark(i int, x, y float64) string {
	return fmt.Sprintf([]string{
		"M%.1f %.1fm-3.5-3.5h7v7h-7z", "M%.1f %.1fm0-4.5l4.5 8h-9z", "M%.1f %.1fm0-5l5 5-5 5-5-5z", "M%.1f %.1fm0 4.5l4.5-8h-9z",
	}[i%4], x, y)
}

// namePlaces are where the lines' names stand: beside their ends, one below another.
func namePlaces(lines []Line, py func(float64) float64) []float64 {
	const apart = 18
	places, order := make([]float64, len(lines)), make([]int, len(lines))
	for i, l := range lines {
		places[i], order[i] = py(l.Points[len(l.Points)-1][1]), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(places[a] - places[b]) })
	for k, i := range order {
		if k > 0 {
			places[i] = max(places[i], places[order[k-1]]+apart)
		}
	}
	if over := places[order[len(order)-1]] - (height - foot); over > 0 {
		for i := range places {
			places[i] -= over
		}
	}
	return places
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
