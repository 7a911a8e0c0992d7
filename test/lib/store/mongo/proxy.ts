import { once } from 'node:events'
import { type AddressInfo, type Socket, connect, createServer } from 'node:net'
import { type Test } from 'tap'

/** What the proxy does with what comes: carries it, keeps it without a sign, or cuts every connection. */
export type Mode = 'pass' | 'freeze' | 'down'

export interface Proxy {
  port: number
  set: (mode: Mode) => void
  /** Freezes as soon as a client sends this text. */
  freezeAt: (text: string) => void
  /** Connections of clients that are open. */
  open: () => number
}

/** A TCP proxy before a server, for faults that the server itself cannot be made to have. */
export async function startProxy (t: Test, target: { host: string, port: number }): Promise<Proxy> {
  const pairs = new Map<Socket, Socket | null>()
  let mode: Mode = 'pass'
  let trap: string | undefined

  const server = createServer((client) => {
    client.on('error', () => {}).on('close', () => {
      pairs.get(client)?.destroy()
      pairs.delete(client)
    })
    if (mode === 'down') return client.destroy()
    pairs.set(client, null)
    if (mode === 'pass') carry(client)
    else client.pause()
  })

  function carry (client: Socket): void {
    const upstream = pairs.get(client) ?? connect(target)
    if (pairs.get(client) === null) {
      pairs.set(client, upstream)
      upstream.on('error', () => {}).on('close', () => client.destroy()).on('data', (data) => client.write(data))
      client.on('data', (data) => {
        if (trap !== undefined && data.includes(trap)) set('freeze')
        else upstream.write(data)
      })
    }
    client.resume()
    upstream.resume()
  }

  function set (next: Mode): void {
    mode = next
    trap = undefined
    for (const [client, upstream] of pairs) {
      if (mode === 'pass') carry(client)
      if (mode === 'freeze') for (const socket of [client, upstream]) socket?.pause()
      if (mode === 'down') client.destroy()
    }
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    set('down')
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    set,
    freezeAt: (text) => { trap = text },
    open: () => pairs.size
  }
}
