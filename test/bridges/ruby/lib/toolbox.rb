# frozen_string_literal: true

require_relative "tool"

# Makes tools of methods, and keeps them: the same text is the same tool, whoever sees it.
class Toolbox
  MOST = 20_000

  def initialize
    @tools = {}
    @lock = Mutex.new
  end

  # The tool that the text of a method describes, or nil for a method that is none or that no tool can be made of.
  def tool(text)
    @lock.synchronize { return @tools[text] if @tools.key?(text) }
    made = translated(text)
    @lock.synchronize do
      @tools.clear if @tools.size >= MOST
      @tools[text] = made
    end
  end

  private

  # One broken method must not cost the others.
  def translated(text)
    Tool.from(text)&.tap(&:to_json)
  rescue JsonText::Invalid, Schema::Unusable, TypeError, NoMethodError => e
    warn "the method #{text[/"id"\s*:\s*"([^"]{0,200})/, 1]} is left out: #{e.message.lines.first}"
    nil
  end
end
