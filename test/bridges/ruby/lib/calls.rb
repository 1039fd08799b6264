# frozen_string_literal: true

require_relative "failure"

# Runs tools, for both interfaces.
class Calls
  def initialize(drupal, catalogs)
    @drupal = drupal
    @catalogs = catalogs
  end

  # Runs a tool once and returns the text of its result; it is cancelled when the other end of watched closes.
  def run(tool, arguments, caller, watched = nil)
    mismatches = tool.mismatches(parsed(arguments))
    raise invalid(tool, mismatches) unless mismatches.empty?

    outcome = @drupal.call(tool.name, arguments, caller, watched:)
    return outcome.result unless outcome.error?

    @catalogs.expire(caller) if [-32_600, -32_601, -32_602].include?(outcome.code)
    raise failure(tool, outcome)
  end

  private

  def parsed(arguments) = JsonText.parse(arguments)

  def invalid(tool, mismatches)
    Failure.new(:invalid_params, "The arguments of #{tool.name} are not valid: #{mismatches.join("; ")}.",
                data: mismatches.one? ? mismatches.first : mismatches)
  end

  def failure(tool, outcome)
    return Failure.new(:access_denied, "You may not run the tool #{tool.name}.") if outcome.denied?

    data = { jsonrpc_code: outcome.code }
    data[:jsonrpc_data] = JsonText::Raw.new(outcome.public_data) if outcome.public_data
    case outcome.code
    when -32_601 then Failure.tool_not_found(tool.name)
    when -32_602
      named = outcome.violated || outcome.missing
      Failure.new(:invalid_params, ["The site refused the arguments of #{tool.name}", named || filled(outcome.message)].compact.join(": "),
                  data: named ? { parameter: named, **data } : data)
    else
      Failure.new(:execution_error, ["The tool #{tool.name} failed", filled(outcome.message)].compact.join(": "), data:)
    end
  end

  def filled(text) = text.empty? ? nil : text
end
