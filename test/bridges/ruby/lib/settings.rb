# frozen_string_literal: true

require "uri"

# What the environment says.
Settings = Struct.new(:site, :host, :port, :discovery_ttl, :permission_ttl, :upstream_timeout, :page_size, keyword_init: true) do
  def self.from(env)
    host, _, port = env.fetch("BRIDGE_LISTEN", "127.0.0.1:8081").rpartition(":")
    new(
      site: site(env.fetch("DRUPAL_URL") { abort "DRUPAL_URL is not set: the address of the Drupal site" }),
      host: host.delete_prefix("[").delete_suffix("]"),
      port: Integer(port, 10),
      discovery_ttl: Float(env.fetch("BRIDGE_DISCOVERY_TTL", 300)),
      permission_ttl: Float(env.fetch("BRIDGE_PERMISSION_TTL", 60)),
      upstream_timeout: Float(env.fetch("BRIDGE_UPSTREAM_TIMEOUT", 30)),
      page_size: Integer(env.fetch("BRIDGE_PAGE_SIZE", 50))
    )
  end

  # A user in the URL is dropped here: nothing may print it later.
  def self.site(text)
    uri = URI.parse(text)
    abort "DRUPAL_URL must be http://HOST[:PORT][/PATH]" unless uri.instance_of?(URI::HTTP) && uri.host
    URI::HTTP.build(host: uri.host, port: uri.port, path: uri.path.chomp("/"))
  end
end
