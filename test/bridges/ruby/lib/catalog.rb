# frozen_string_literal: true

require "digest"

require_relative "failure"
require_relative "toolbox"

# The tools that one caller sees, in the site's order.
class Catalog
  Page = Struct.new(:tools, :next_cursor)

  attr_reader :tools

  def self.from(discovery, toolbox, page_size)
    tools = discovery.methods.filter_map { |text| toolbox.tool(text) }
    new(tools.uniq(&:name), discovery.may_discover, page_size)
  end

  def initialize(tools, may_discover, page_size)
    @tools = tools
    @by_name = tools.to_h { |tool| [tool.name, tool] }
    @may_discover = may_discover
    @page_size = page_size
    @version = Digest::SHA256.hexdigest(tools.map(&:name).join("\n"))[0, 16]
  end

  def require_discovery
    @may_discover or raise Failure.new(:access_denied, "You may not discover tools.")
  end

  def tool(name) = @by_name[name] || raise(Failure.tool_not_found(name))

  def page(cursor)
    start = cursor.nil? || cursor.empty? ? 0 : offset(cursor)
    following = start + @page_size
    Page.new(@tools[start, @page_size], following < @tools.size ? "#{following}.#{@version}" : nil)
  end

  private

  # A cursor belongs to one order of tools: when that changes, the caller starts anew.
  def offset(cursor)
    start, version = cursor.match(/\A([1-9]\d{0,8})\.(\h{16})\z/)&.captures
    return start.to_i if version == @version && start.to_i < @tools.size

    raise Failure.new(:invalid_cursor, "The cursor is not one of this list: begin again without one.")
  end
end
