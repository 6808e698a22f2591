// A Java program: compiled while it runs, null pointers that are signals, stack overflows that are caught,
// threads, garbage.
// A right recording: the same output; Java's own methods are not recorded.
public class Calls {
    static int depth;
    static int deep() { depth++; return deep() + 1; }
    static int length(String text) { return text.length(); }

    public static void main(String[] arguments) throws Exception {
        long sum = 0;
        for (int i = 0; i < 200000; i++) sum += Integer.toString(i).hashCode() & 7;
        System.out.println(sum);
        try { length(null); } catch (NullPointerException e) { System.out.println("null"); }
        try { deep(); } catch (StackOverflowError e) { System.out.println(depth > 1000 ? "deep" : "shallow"); }
        Thread[] threads = new Thread[20];
        long[] results = new long[20];
        for (int i = 0; i < 20; i++) {
            int n = i;
            threads[i] = new Thread(() -> { for (int k = 0; k < 10000; k++) results[n] += k ^ n; });
            threads[i].start();
        }
        sum = 0;
        for (int i = 0; i < 20; i++) { threads[i].join(); sum += results[i]; }
        System.out.println(sum);
        System.exit(4);
    }
}
