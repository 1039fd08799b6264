// A small server with mark3labs/mcp-go, as its README builds one. It listens on the address given by -http, or speaks on stdio.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	address := flag.String("http", "", "address to listen on")
	flag.Parse()
	s := server.NewMCPServer("small", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("greet", mcp.WithDescription("Greets"), mcp.WithString("name", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			name, err := r.RequireString("name")
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText("Hello, " + name + "!"), nil
		})
	if *address == "" {
		log.Fatal(server.ServeStdio(s))
	}
	log.Fatal(server.NewStreamableHTTPServer(s).Start(*address))
}
