// Package chart draws line charts as PNG, for the pictures in docs/.
//
//	c := chart.Chart{Title: "Denied", Unit: "requests/s", From: t0, To: t1}
//	c.Lines = []chart.Line{{Name: "shop", Points: points}, {Name: "limit", Points: level, Limit: true}}
//	err := chart.PNG(w, &c)
package chart
