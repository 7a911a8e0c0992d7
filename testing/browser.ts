import type { FastifyInstance } from 'fastify'

/** A browser that follows redirects within the service, and submits its forms. */
class Browser {
  readonly #app: FastifyInstance
  readonly #origin: string
  readonly #cookies = new Map<string, string>()

  constructor (app: FastifyInstance, origin: string) {
    this.#app = app
    this.#origin = origin
  }

  /** @returns the page, or the redirect that leaves the service */
  async open (url: string, form?: URLSearchParams): Promise<{ page: string } | { left: URL }> {
    const target = new URL(url, this.#origin)
    if (target.origin !== this.#origin) return { left: target }
    const { statusCode, headers, body } = await this.#app.inject({
      method: form === undefined ? 'GET' : 'POST',
      url: target.pathname + target.search,
      headers: {
        accept: 'text/html',
        cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form !== undefined && { origin: this.#origin, 'content-type': 'application/x-www-form-urlencoded' })
      },
      ...(form !== undefined && { payload: String(form) })
    })
    for (const line of [headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      this.#cookies.set(name, value)
    }
    if (headers.location !== undefined) return await this.open(new URL(headers.location, target).href)
    if (statusCode >= 400) {
      throw new Error(`the service answered ${statusCode}: ${body.replace(/<style[\s\S]*?<\/style>|<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim()}`)
    }
    return { page: body }
  }

  async submit (page: string, fields: Record<string, string>): ReturnType<Browser['open']> {
    const [, action = '', form = ''] = /<form[^>]* action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/.exec(page) ?? []
    const hidden = [
      ...form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)
    ].map(([, name = '', value = '']): [string, string] => [name, value])
    return await this.open(action.replaceAll('&amp;', '&'), new URLSearchParams([...hidden, ...Object.entries(fields)]))
  }
}

/** A new browser at the origin of the app's issuer. */
export async function openBrowser (app: FastifyInstance): Promise<Browser> {
  const { issuer } = (await app.inject({ url: '/.well-known/openid-configuration', headers: { accept: 'application/json' } })).json<{ issuer: string }>()
  return new Browser(app, new URL(issuer).origin)
}
