# frozen_string_literal: true

# A bridge from the JSON-RPC methods of a Drupal site to MCP tools, with Ruby's standard library alone.
#
#   DRUPAL_URL=http://127.0.0.1:8080 BRIDGE_LISTEN=127.0.0.1:8081 ruby bridge.rb

require_relative "lib/app"
require_relative "lib/server"
require_relative "lib/settings"

$stderr.sync = true
settings = Settings.from(ENV)
server = Server.new(settings.host, settings.port, App.new(settings))
%w[TERM INT].each { |signal| trap(signal) { server.stop } }
server.run
