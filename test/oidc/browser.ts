import { randomBytes } from 'node:crypto'

/** The field by which a form that is submitted again is another one, as from a new page. */
export const anotherForm = (): { form_id: string } => ({ form_id: randomBytes(16).toString('base64url') })

/** A page without what differs each time it is shown: the one-time id of its forms. */
export const withoutIds = (text: string): string => text.replaceAll(/name="form_id" value="[^"]*"/g, '')

/** A minimal browser: it stores cookies by path, follows redirects within the service, and submits forms. */
export class Browser {
  readonly #jar = new Map<string, { value: string, path: string }>()
  readonly origin: string

  constructor (origin: string) {
    this.origin = origin
  }

  /** The values of its cookies, without their signatures. */
  cookies (): string[] {
    return [...this.#jar].filter(([name]) => !name.includes('.sig ')).map(([, { value }]) => value)
  }

  async fetch (url: string, options: RequestInit = {}): Promise<Response> {
    const target = new URL(url, this.origin)
    const cookie = [...this.#jar].filter(([, { path }]) => target.pathname.startsWith(path)).map(([name, { value }]) => `${name.split(' ')[0]}=${value}`).join('; ')
    const response = await fetch(target, {
      redirect: 'manual', ...options, headers: { accept: 'text/html', cookie, ...options.headers as Record<string, string> }
    })
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split('; ')
      const [name = '', value = ''] = pair.split('=')
      const path = attributes.find((text) => text.startsWith('path='))?.slice(5) ?? '/'
      const gone = attributes.some((text) => text.startsWith('expires=Thu, 01 Jan 1970'))
      if (gone || value === '') this.#jar.delete(`${name} ${path}`)
      else this.#jar.set(`${name} ${path}`, { value, path })
    }
    return response
  }

  /** Follows redirects, up to the first one that leaves the service. */
  async open (url: string, options?: RequestInit): Promise<Page> {
    let response = await this.fetch(url, options)
    for (let hops = 0; hops < 12; hops++) {
      const location = response.headers.get('location')
      if (location === null) return new Page(this, response, await response.text())
      const next = new URL(location, this.origin)
      if (next.origin !== this.origin) return new Page(this, response, '', next)
      await response.body?.cancel()
      response = await this.fetch(next.href)
    }
    throw new Error('too many redirects')
  }
}

/** The page of the service where a browser arrived, or the redirect by which it left. */
export class Page {
  readonly browser: Browser
  readonly response: Response
  readonly text: string
  /** The redirect out of the service. */
  readonly left: URL | undefined

  constructor (browser: Browser, response: Response, text: string, left?: URL) {
    this.browser = browser
    this.response = response
    this.text = text
    this.left = left
  }

  get title (): string {
    return /<title>([^<]*)/.exec(this.text)?.[1] ?? ''
  }

  /** The OAuth error on the page, or in the redirect to the app. */
  get error (): string | undefined {
    return this.left?.searchParams.get('error') ?? /<code>(\w+)<\/code>/.exec(this.text)?.[1]
  }

  /** Submits the page's first form that has one of the given fields, or else its first form, with its hidden fields. */
  async submit (fields: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Page> {
    const forms = [...this.text.matchAll(/<form[^>]*>.*?<\/form>/gs)].map(([form]) => form)
    const has = (form: string, field: string) => new RegExp(`<(?!input type="hidden")[^>]* name="${field}"`).test(form)
    const form = forms.find((one) => Object.keys(fields).some((field) => has(one, field))) ?? forms[0] ?? ''
    const action = / action="([^"]*)"/.exec(form)?.[1]
    if (action === undefined) throw new Error(`no form on the page '${this.title}'`)
    const hidden = [...form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name = '', value = '']): [string, string] => [name, value])
      .filter(([name]) => fields[name] === undefined)
    return await this.browser.open(action.replaceAll('&amp;', '&'), {
      method: 'POST',
      body: new URLSearchParams([...hidden, ...Object.entries(fields)]),
      headers: { origin: this.browser.origin, ...headers }
    })
  }
}
