package serve

import (
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestServedPagesInABrowser(t *testing.T) {
	handler := must.Get(Handler(folder(t)))(t)
	server := httptest.NewServer(handler)
	defer server.Close()
	b := chrome.Open(t, chrome.Start(t), server.URL+"/", 1280, 700)
	b.Picture("index-1280")
	b.Run(chromedp.Click(`tbody th a`), chromedp.WaitReady(`details.result`), chromedp.Navigate(server.URL+"/"), chromedp.EmulateViewport(360, 740))
	width := chrome.Eval[int](b, `document.documentElement.scrollWidth`)
	must.Expect(t, width <= 360, "at 360 px the index is %d px wide", width)
}
