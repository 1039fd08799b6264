# frozen_string_literal: true

require "json"

# An error with a code of the contract: the status follows from the code.
class Failure < StandardError
  STATUS = {
    missing_parameter: 400, invalid_json: 400, invalid_params: 400, invalid_cursor: 400, invalid_request: 400,
    authentication_required: 401, access_denied: 403, tool_not_found: 404, not_found: 404, method_not_allowed: 405,
    request_too_large: 413, unsupported_media_type: 415, execution_error: 500, internal_error: 500,
    upstream_error: 502, upstream_unavailable: 503, upstream_timeout: 504
  }.freeze

  attr_reader :code, :data, :headers

  def initialize(code, message, data: nil, headers: {})
    super(message)
    @code = code
    @data = data
    @headers = headers
  end

  def status = STATUS.fetch(code)

  def upstream? = status > 500

  def to_json(*) = JSON.generate(error: { code:, message:, data: }.compact)

  def self.tool_not_found(name) = new(:tool_not_found, "There is no tool named #{name.inspect_json}.")
end

class String
  # The text as JSON writes it, with its quotes.
  def inspect_json = JSON.generate(self)
end
