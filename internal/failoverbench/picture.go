package failoverbench

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// The picture's geometry: a plot inside margins, with the legend below it.
const (
	pictureWidth               = 820
	plotLeft, plotTop          = 62, 44
	plotWidth, plotHeight      = 730, 300
	legendTop, legendLine      = plotTop + plotHeight + 58, 20
	smallestRatio              = 0.9
	ratioStep, percentageSteps = 0.2, 4
)

// colours tell up to six contestants apart, also for people who see no red or green.
var colours = []string{"#0072b2", "#d55e00", "#cc79a7", "#009e73", "#56b4e9", "#e69f00"}

// Picture is the distribution of each contestant's failovers over their limits, as a
// drawing that needs nothing else: the share of rounds that were over by then.
func (r Report) Picture() []byte {
	largest := 1.2
	for _, x := range r.Results {
		if all := x.Ratios(); len(all) > 0 {
			largest = max(largest, all[len(all)-1])
		}
	}
	largest = math.Ceil(largest/ratioStep) * ratioStep
	toX := func(ratio float64) float64 { return plotLeft + plotWidth*(ratio-smallestRatio)/(largest-smallestRatio) }
	toY := func(share float64) float64 { return plotTop + plotHeight*(1-share) }

	var b strings.Builder
	height := legendTop + legendLine*len(r.Results) + 4
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="13" fill="#222">`+"\n",
		pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", pictureWidth, height)
	text := func(x, y float64, anchor, content string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, escaped(content))
	}
	line := func(x1, y1, x2, y2 float64, style string) {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>`+"\n", x1, y1, x2, y2, style)
	}
	text(plotLeft, 24, "start", fmt.Sprintf("Failovers that are over, by multiples of the earliest safe moment (%d crashes each)", r.Setup.Rounds))
	// 1. The axes.
	for i := range percentageSteps + 1 {
		share := float64(i) / percentageSteps
		line(plotLeft, toY(share), plotLeft+plotWidth, toY(share), `stroke="#ddd"`)
		text(plotLeft-8, toY(share)+4, "end", fmt.Sprintf("%.0f %%", share*100))
	}
	for ratio := 1.0; ratio <= largest+ratioStep/2; ratio += ratioStep {
		line(toX(ratio), plotTop+plotHeight, toX(ratio), plotTop+plotHeight+5, `stroke="#222"`)
		text(toX(ratio), plotTop+plotHeight+20, "middle", fmt.Sprintf("%.1f", ratio))
	}
	text(plotLeft+plotWidth/2, plotTop+plotHeight+40, "middle", "time from the crash to the confirmed acquisition / limit of that crash")
	line(toX(1), plotTop, toX(1), plotTop+plotHeight, `stroke="#222" stroke-dasharray="4 3"`)
	// 2. A staircase for each contestant.
	for i, x := range r.Results {
		var path strings.Builder
		fmt.Fprintf(&path, "M%.1f %.1f", toX(smallestRatio), toY(0))
		all := x.Ratios()
		for n, ratio := range all {
			fmt.Fprintf(&path, "H%.1fV%.1f", toX(ratio), toY(float64(n+1)/float64(len(all))))
		}
		fmt.Fprintf(&path, "H%.1f", toX(largest))
		colour, y := colours[i%len(colours)], float64(legendTop+legendLine*i)
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), colour)
		line(plotLeft, y-4, plotLeft+26, y-4, fmt.Sprintf(`stroke="%s" stroke-width="3"`, colour))
		text(plotLeft+34, y, "start", fmt.Sprintf("%s (%s) on %s: mean %s, %.2f x its limit", x.Name, x.Settings, x.Store, seconds(x.Failover().Mean), x.Ratio()))
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
