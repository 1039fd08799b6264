# frozen_string_literal: true

require_relative "failure"
require_relative "json_text"
require_relative "site"

# Drupal's modules jsonrpc and jsonrpc_discovery.
class Drupal
  Discovery = Struct.new(:methods, :may_discover)

  SCHEMA_VIOLATION = /\AThe (.+?) parameter does not conform to the parameter schema\./m

  # What a call gave: the result as the text that came, or an error.
  Outcome = Struct.new(:result, :code, :message, :data, keyword_init: true) do
    def error? = !code.nil?

    def denied? = code == -32_600 && words.start_with?("Access Denied")

    # The parameter that Drupal names where a value breaks its schema, or nil. What follows is PHP's own text.
    def violated = code == -32_602 ? words[SCHEMA_VIOLATION, 1] : nil

    def missing = code == -32_602 ? words[/\AMissing required parameter: (.+)\z/m, 1] : nil

    # The data that a caller may see.
    def public_data = code == -32_603 || violated ? nil : data

    private

    def words
      text = data ? JsonText.parse(data) : nil
      text.is_a?(String) ? text : ""
    end
  end

  def initialize(site)
    @site = site
    @ids = 0
    @lock = Mutex.new
  end

  # The caller's methods, each as the text of its JSON, so that a broken one costs no other.
  def discover(caller)
    answer = usable(@site.get("/jsonrpc/methods", caller.headers))
    raise Failure.new(:upstream_error, "The site's list of methods was not usable.") unless answer.status == 200

    members = JsonText.members(answer.body)
    meta = JsonText.parse(members.fetch("meta", "{}"))
    discovery = meta.is_a?(Hash) && meta["mcp"].is_a?(Hash) && meta["mcp"]["discovery"] == true
    Discovery.new(JsonText.elements(members.fetch("data") { raise JsonText::Invalid, "there is no data" }), discovery)
  rescue JsonText::Invalid
    raise Failure.new(:upstream_error, "The site's list of methods was not usable.")
  end

  # Runs a method once, with arguments that are JSON already.
  def call(method, arguments, caller, watched: nil)
    id = @lock.synchronize { @ids += 1 }
    body = %({"jsonrpc":"2.0","id":#{id},"method":#{JSON.generate(method)},"params":#{arguments}})
    outcome(usable(@site.post("/jsonrpc", caller.headers, body, watched:)), id)
  rescue JsonText::Invalid
    raise unusable
  end

  private

  def usable(answer)
    case answer.status
    when 401 then raise refused(answer)
    when 403 then raise Failure.new(:access_denied, "The site refused access: the credentials are wrong, or a permission is missing.")
    when 503 then raise Failure.new(:upstream_unavailable, "The site is unavailable.") unless json_rpc_error?(answer)
    end
    answer
  end

  def refused(answer)
    challenges = answer.headers.fetch("www-authenticate", ['Basic realm="Drupal"'])
    Failure.new(:authentication_required, "The site asks for credentials.", headers: { "WWW-Authenticate" => challenges })
  end

  def json_rpc_error?(answer)
    JsonText.members(answer.body).key?("error")
  rescue JsonText::Invalid
    false
  end

  def outcome(answer, id)
    response = JsonText.parse(answer.body)
    raise unusable unless response.is_a?(Hash) && response.key?("result") ^ response.key?("error")

    texts = JsonText.members(answer.body)
    return failed(response["error"], texts["error"]) if response.key?("error")
    raise unusable unless answer.status == 200 && response["id"] == id

    Outcome.new(result: texts["result"])
  end

  def failed(error, text)
    raise unusable unless error.is_a?(Hash) && error["code"].is_a?(Integer)

    Outcome.new(code: error["code"], message: error["message"].is_a?(String) ? error["message"] : "", data: JsonText.members(text)["data"])
  end

  def unusable = Failure.new(:upstream_error, "The site's response was not usable.")
end
