import { Browser, type Page } from './browser.ts'

/** What a browser sees of an answer. */
const see = async (response: Response) => ({
  status: response.status, location: response.headers.get('location'), cookies: response.headers.getSetCookie().sort(), text: await response.clone().text()
})

/** A browser in which every form is sent twice at once, as by a double click. It goes on with one answer, and compares both. */
export class TwiceBrowser extends Browser {
  /** The ids of the forms of the last page. */
  #form = ''
  /** Whether forms are sent twice from now on. */
  isOn = false
  /** The paths of forms that were answered in two ways. */
  readonly different: string[] = []
  /** The number of forms that were sent twice. */
  sent = 0

  override async open (url: string, options?: RequestInit): Promise<Page> {
    const page = await super.open(url, options)
    this.#form = /name="form_id" value="([^"]*)"/.exec(page.text)?.[1] ?? this.#form
    return page
  }

  override async fetch (url: string, options: RequestInit = {}): Promise<Response> {
    const { body } = options
    if (options.method === 'POST' && body instanceof URLSearchParams && !body.has('form_id')) body.set('form_id', this.#form)
    if (!this.isOn || options.method !== 'POST') return await super.fetch(url, options)
    this.sent++
    const [one, two] = await Promise.all([super.fetch(url, options), super.fetch(url, options)])
    const [first, second] = [await see(one), await see(two)]
    if (JSON.stringify(first) !== JSON.stringify(second)) this.different.push(`${url}: ${first.status} ${first.location} ${/<h1>.*?<\/h1>/.exec(first.text)?.[0]}, ${second.status} ${second.location} ${/<h1>.*?<\/h1>/.exec(second.text)?.[0]}, ${first.cookies.length} and ${second.cookies.length} cookies`)
    return two
  }
}
