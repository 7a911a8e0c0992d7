/** The host and the ports of a Service, and where its containers listen, as Kubernetes names them. */
const BY_NAME = [/_SERVICE_HOST$/, /_SERVICE_PORT(_[A-Z0-9_]+)?$/, /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/]

/**
 * Whether a variable describes a Service of the Kubernetes namespace ("service links"). Those of a Service called `identity` begin as our own
 * variables do.
 */
export function isServiceLink (name: string, text: string): boolean {
  return BY_NAME.some((pattern) => pattern.test(name)) || (name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text))
}
