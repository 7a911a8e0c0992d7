/** A semaphore: a fixed number of slots, given to tasks in the order in which they ask. */
export class Slots {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor (count: number) {
    this.#free = count
  }

  async take (): Promise<void> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  give (): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free++
    else next()
  }
}
