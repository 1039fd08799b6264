# frozen_string_literal: true

require_relative "failure"
require_relative "http"
require_relative "json_text"
require_relative "output"
require_relative "sessions"

# MCP by the Streamable HTTP transport, without streams: each POST gets its response as JSON.
class Mcp
  VERSIONS = %w[2025-11-25 2025-06-18].freeze
  HINTS = { "title" => String, "readOnlyHint" => nil, "destructiveHint" => nil, "idempotentHint" => nil, "openWorldHint" => nil }.freeze

  # An error of the protocol.
  class ProtocolError < StandardError
    attr_reader :code

    def initialize(code, message)
      super(message)
      @code = code
    end
  end

  def initialize(catalogs, calls, settings)
    @catalogs = catalogs
    @calls = calls
    @sessions = Sessions.new
    @hosts = [settings.host, "localhost"].map { |host| "#{host}:#{settings.port}" }
  end

  def call(request, caller)
    return refused(403, -32_600, "The Origin is not allowed.") if request.foreign_origin?(@hosts)

    version = request.header("mcp-protocol-version")
    return refused(400, -32_600, "The protocol version is not supported.") unless version.nil? || VERSIONS.include?(version)

    case request.method
    when "POST" then post(request, caller)
    when "DELETE" then delete(request, caller)
    else Response.json(405, error(nil, -32_600, "Use POST."), { "Allow" => "POST, DELETE", "Cache-Control" => "no-store" })
    end
  end

  private

  def post(request, caller)
    return refused(415, -32_600, "The Content-Type is application/json.") unless request.media_type == "application/json"

    message = JsonText.parse(request.body)
    return refused(400, -32_600, "A message is a JSON-RPC 2.0 object.") unless message.is_a?(Hash) && message["jsonrpc"] == "2.0"
    return refused(400, -32_600, "The id of a request is a text or a whole number.") unless id?(message)

    opens = message["method"] == "initialize"
    session = request.header("mcp-session-id")
    unless opens
      return refused(400, -32_600, "The header Mcp-Session-Id is missing.") unless session
      return refused(404, -32_600, "There is no such session.") unless @sessions.of?(session, caller)
    end
    return Response.new(202, {}, "") if !message.key?("id") || !message.key?("method")

    answer(request, caller, message, opens)
  rescue JsonText::Invalid
    refused(400, -32_700, "The body is not JSON.")
  end

  def id?(message)
    !message.key?("id") || message["id"].is_a?(String) || JsonText.integer?(message["id"])
  end

  def answer(request, caller, message, opens)
    result = dispatch(request, caller, message)
    headers = { "Cache-Control" => "no-store" }
    headers["Mcp-Session-Id"] = @sessions.open(caller) if opens
    Response.json(200, JSON.generate(jsonrpc: "2.0", id: message["id"], result:), headers)
  rescue ProtocolError => e
    Response.json(200, error(message["id"], e.code, e.message), { "Cache-Control" => "no-store" })
  rescue Failure => e
    failed(message["id"], e)
  end

  def failed(id, failure)
    status, code =
      case failure.code
      when :authentication_required, :access_denied then [failure.status, -32_600]
      when :tool_not_found, :invalid_cursor then [200, -32_602]
      else [failure.status, -32_603]
      end
    Response.json(status, error(id, code, failure.message), { "Cache-Control" => "no-store", **failure.headers })
  end

  def dispatch(request, caller, message)
    parameters = message.fetch("params", {})
    raise ProtocolError.new(-32_602, "params is an object.") unless parameters.is_a?(Hash)

    case message["method"]
    when "initialize" then opened(caller, parameters)
    when "ping" then {}
    when "tools/list" then list(caller, parameters)
    when "tools/call" then run(request, caller, parameters)
    else raise ProtocolError.new(-32_601, "There is no such method.")
    end
  end

  # Who has wrong credentials learns it here.
  def opened(caller, parameters)
    @catalogs.for(caller)
    wanted = parameters["protocolVersion"]
    { protocolVersion: VERSIONS.include?(wanted) ? wanted : VERSIONS.first, capabilities: { tools: {} },
      serverInfo: { name: "ruby-bridge", version: "1.0" } }
  end

  def list(caller, parameters)
    cursor = parameters["cursor"]
    raise ProtocolError.new(-32_602, "The cursor is a text.") unless cursor.nil? || cursor.is_a?(String)

    catalog = @catalogs.for(caller).catalog
    catalog.require_discovery
    page = catalog.page(cursor)
    { tools: page.tools.map { |tool| shown(tool) }, nextCursor: page.next_cursor }.compact
  end

  def shown(tool)
    hints, others = (tool.annotations || {}).partition { |name, _| HINTS.key?(name) }.map(&:to_h)
    hints = hints.select { |name, value| HINTS[name] ? value.is_a?(HINTS[name]) : [true, false].include?(value) }
    whole = tool.to_h.except(:outputSchema, :annotations)
    whole[:outputSchema] = Output.new(tool.output_schema).schema if tool.output_schema
    whole[:annotations] = hints unless hints.empty?
    whole[:_meta] = { "drupal.org/annotations" => others } unless others.empty?
    whole
  end

  def run(request, caller, parameters)
    name = parameters["name"]
    raise ProtocolError.new(-32_602, "The name of the tool is missing.") unless name.is_a?(String)
    raise ProtocolError.new(-32_602, "arguments is an object.") unless parameters.fetch("arguments", {}).is_a?(Hash)

    tool = @catalogs.for(caller).catalog.tool(name)
    sent = JsonText.members(JsonText.members(request.body)["params"]).fetch("arguments", "{}")
    Output.new(tool.output_schema).of(@calls.run(tool, sent, caller)) # to its end, whether the client waits or not
  rescue Failure => e
    raise ProtocolError.new(-32_602, e.message) if %i[tool_not_found].include?(e.code) || (e.code == :access_denied && tool)
    raise unless tool && e.code != :authentication_required

    { content: [{ type: "text", text: e.message }], isError: true }
  end

  def delete(request, caller)
    session = request.header("mcp-session-id")
    return refused(400, -32_600, "The header Mcp-Session-Id is missing.") unless session
    return refused(404, -32_600, "There is no such session.") unless @sessions.of?(session, caller)

    @sessions.close(session)
    Response.new(204, {}, "")
  end

  def refused(status, code, message) = Response.json(status, error(nil, code, message), { "Cache-Control" => "no-store" })

  def error(id, code, message) = JSON.generate(jsonrpc: "2.0", id:, error: { code:, message: })
end
