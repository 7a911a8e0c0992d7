import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance, onResponseHookHandler } from 'fastify'
import type { Meter } from '../lib/metrics/meter.ts'
import { readCode } from '../lib/failure.ts'
import { createServer } from '../lib/node-http.ts'

/** Maximum connections of scrapers; further ones are closed at once. */
const CONNECTIONS = 16

/** The metrics of this process. */
export interface Metrics {
  /** The URL that serves them; undefined until the app is ready. */
  readonly url: string | undefined
  /** Measures the requests of the scope that it is added to. */
  readonly onResponse: onResponseHookHandler
}

/** `HOST:PORT`, with brackets around an IPv6 address. */
function parseAddress (text: string): { host: string, port: number } {
  const end = text.lastIndexOf(':')
  return { host: text.slice(0, end).replace(/^\[|\]$/g, ''), port: Number(text.slice(end + 1)) }
}

/** OpenMetrics, except for a scraper that knows the older format only. */
function chooseFormat (accept = ''): 'openmetrics' | 'prometheus' {
  return accept.includes('text/plain') && !accept.includes('application/openmetrics-text') ? 'prometheus' : 'openmetrics'
}

/**
 * Serves the metrics of this process on a separate listener, so that access to the service gives no access to them.
 * @param address `HOST:PORT`; port 0 picks a free one
 * @throws Error at boot when the address cannot be listened on
 */
export function serveMetrics (app: FastifyInstance, meter: Meter, address: string): Metrics {
  let url: string | undefined
  const server = createServer((request, response) => {
    const isKnown = request.url?.split('?')[0] === '/metrics'
    if (!isKnown || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(isKnown ? 405 : 404, isKnown ? { allow: 'GET, HEAD' } : {}).end()
      return
    }
    meter.render(chooseFormat(request.headers.accept)).then(
      ({ type, text }) => response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' }).end(text),
      (error) => {
        app.log.error({ err: error }, 'metrics could not be rendered')
        response.writeHead(500).end()
      }
    )
  })
  server.maxConnections = CONNECTIONS

  app.addHook('onReady', async () => {
    const { host, port } = parseAddress(address)
    // Exclusive, because in a worker node:cluster would share the port among all workers.
    server.listen({ host, port, exclusive: true })
    try {
      await once(server, 'listening')
    } catch (cause) {
      throw new Error(`option metrics: ${address} cannot be listened on (${readCode(cause)})`, { cause })
    }
    server.unref()
    const { family, address: ip, port: bound } = server.address() as AddressInfo
    url = `http://${family === 'IPv6' ? `[${ip}]` : ip}:${bound}/metrics`
    app.log.info({ url }, 'metrics')
  })
  app.addHook('onClose', async () => {
    server.close()
    server.closeAllConnections()
  })

  return {
    get url () { return url },
    onResponse (request, reply, done) {
      const { method, routeOptions } = request
      meter.request({ method, route: routeOptions.url ?? 'none', status: reply.statusCode }, reply.elapsedTime / 1000)
      done()
    }
  }
}
