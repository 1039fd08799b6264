# frozen_string_literal: true

require "digest"
require "zlib"

require_relative "failure"
require_relative "http"
require_relative "json_text"

# The three endpoints below /mcp/tools.
class ToolsApi
  PRIVATE = { "Cache-Control" => "private, no-cache", "Vary" => "Authorization, Cookie, Accept-Language, Accept-Encoding" }.freeze
  LARGE = 4096

  def initialize(catalogs, calls)
    @catalogs = catalogs
    @calls = calls
  end

  def list(request, caller)
    view = @catalogs.for(caller)
    view.catalog.require_discovery
    page = view.catalog.page(request.parameter("cursor"))
    body = JSON.generate({ tools: page.tools, nextCursor: page.next_cursor }.compact)
    tag = %(W/"#{Digest::SHA256.hexdigest(body)[0, 32]}")
    headers = { **PRIVATE, "ETag" => tag, **staleness(view) }
    return Response.new(304, headers, "") if known?(request, tag)

    compressed(request, Response.json(200, body, headers))
  end

  def describe(request, caller)
    view = @catalogs.for(caller)
    view.catalog.require_discovery
    name = request.parameter("name")
    raise Failure.new(:missing_parameter, "The parameter name is missing.") if name.nil? || name.empty?

    Response.json(200, JSON.generate(tool: view.catalog.tool(name)), { **PRIVATE, **staleness(view) })
  end

  def invoke(request, caller)
    catalog = @catalogs.for(caller).catalog
    refuse_other_sites(request)
    name, arguments = call_of(request)
    result = @calls.run(catalog.tool(name), arguments, caller, request.io)
    Response.json(200, %({"result":#{result}}), { "Cache-Control" => "no-store" })
  end

  private

  # A page of another site can send a form with the user's cookie, but neither JSON nor the header with the token.
  def refuse_other_sites(request)
    unless request.media_type == "application/json"
      raise Failure.new(:unsupported_media_type, "The Content-Type of a call is application/json.")
    end
    return unless request.header("cookie") && !request.header("x-csrf-token")
    raise Failure.new(:access_denied, "A call from another origin needs X-CSRF-Token.") if request.foreign_origin?([request.header("host")&.downcase])
  end

  def call_of(request)
    body = JsonText.parse(request.body)
    raise Failure.new(:invalid_json, "The body is no JSON object.") unless body.is_a?(Hash)

    name = body["name"]
    raise Failure.new(:missing_parameter, "The member name is missing, empty or no text.") unless name.is_a?(String) && !name.empty?
    raise Failure.new(:missing_parameter, "The member arguments is missing or no object.") unless body["arguments"].is_a?(Hash)

    [name, JsonText.members(request.body)["arguments"]]
  rescue JsonText::Invalid => e
    raise Failure.new(:invalid_json, "The body is not usable: #{e.message}.")
  end

  def staleness(view)
    view.stale_for ? { "Age" => view.stale_for.to_i.to_s, "Warning" => '110 - "Response is Stale"' } : {}
  end

  def known?(request, tag)
    tags = request.header("if-none-match").to_s.scan(%r{(?:W/)?("[^"]*"|\*)}).flatten
    tags.include?("*") || tags.include?(tag.delete_prefix("W/"))
  end

  def compressed(request, response)
    return response if response.body.bytesize < LARGE || !gzip?(request)

    Response.new(response.status, { **response.headers, "Content-Encoding" => "gzip" }, Zlib.gzip(response.body))
  end

  def gzip?(request)
    weights = request.header("accept-encoding").to_s.downcase.split(",").to_h do |part|
      coding, *parameters = part.split(";").map(&:strip)
      [coding, parameters.find { |parameter| parameter.start_with?("q=") }&.delete_prefix("q=").to_s]
    end
    weight = weights["gzip"] || weights["*"]
    !weight.nil? && (weight.empty? || weight.to_f.positive?)
  end
end
