# frozen_string_literal: true

require_relative "caller"
require_relative "calls"
require_relative "catalogs"
require_relative "drupal"
require_relative "mcp"
require_relative "tools_api"

# Leads each request to what serves it, and makes a response of every failure.
class App
  def initialize(settings)
    drupal = Drupal.new(Site.new(settings.site, settings.upstream_timeout))
    catalogs = Catalogs.new(drupal, settings)
    calls = Calls.new(drupal, catalogs)
    @tools = ToolsApi.new(catalogs, calls)
    @mcp = Mcp.new(catalogs, calls, settings)
  end

  def call(request)
    response = route(request)
    warn "#{request.method} #{request.path.inspect} #{response.status}"
    response
  end

  private

  def route(request)
    return @mcp.call(request, Caller.new(request.headers)) if request.path == "/mcp"

    name, verbs = {
      "/mcp/tools/list" => [:list, %w[GET HEAD]],
      "/mcp/tools/describe" => [:describe, %w[GET HEAD]],
      "/mcp/tools/invoke" => [:invoke, %w[POST]]
    }[request.path]
    raise Failure.new(:not_found, "There is nothing at this path.") unless name
    unless verbs.include?(request.method)
      raise Failure.new(:method_not_allowed, "The method here is #{verbs.first}.", headers: { "Allow" => verbs.join(", ") })
    end

    @tools.public_send(name, request, Caller.new(request.headers))
  rescue Failure => e
    failed(e)
  rescue Wire::Cancelled
    raise
  rescue StandardError => e
    warn "#{e.class} at #{e.backtrace.first}"
    failed(Failure.new(:internal_error, "The bridge failed."))
  end

  def failed(failure)
    Response.json(failure.status, failure.to_json, { "Cache-Control" => "no-store", **failure.headers })
  end
end
