/** What a page tells of the client that sent the user. */
export interface PageClient { name: string }

/** What each page is given. Every text is as it came from outside: the page escapes it. */
export interface Pages {
  /** Account and password. */
  'sign-in': { action: string, client: PageClient, account?: string, error?: string }
  /**
   * What the client asks for, where its answer goes, and where the user goes to be somebody else. `acts`: as whom the
   * client's token acts in this service, whatever its scopes; absent for the operator's own.
   */
  consent: { action: string, client: PageClient, account: string, scopes: string[], redirectUri?: string, otherAccount?: string, acts?: 'user' | 'admin' }
  /** The user types the code that a device shows. */
  device: { action: string, xsrf: string, code?: string, error?: string }
  /** The user compares the code with the device's, and says who asked. */
  'device-confirm': { action: string, xsrf: string, code: string, client: PageClient, device?: { ip?: string, ua?: string } }
  'device-done': { client: PageClient }
  'sign-out': { action: string, xsrf: string, client?: PageClient }
  /** `next` is where the client asked the user to be sent to. */
  'signed-out': { client?: PageClient, next?: string }
  /** What went wrong, in words; `code` is for those who look after the app. */
  error: { message: string, code?: string }
}

export type PageName = keyof Pages
